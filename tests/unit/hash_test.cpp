// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/hash.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

using namespace onay::core;

namespace {

std::string counting_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(i * 7 + 1);
  }
  return bytes;
}

std::string similar_key(std::uint32_t i) {
  std::string digits = std::to_string(i);
  return "order-2024-eu-" + std::string(10 - digits.size(), '0') + digits + "-created";
}

}  // namespace

// Stores keep fingerprints: a change here makes every stored one a key conflict. If this fails, the code is wrong.
TEST_CASE("a fingerprint never changes, whatever the version or the machine", "[hash]") {
  struct known {
    std::size_t size;
    fingerprint expected;
    std::uint64_t hash;
  };
  const known table[] = {
      {0, {0x0f538c0e628cdbd8, 0x1f44bcabd1ab42ce}, 0x1ea72f0a9cf0cdd8},
      {1, {0x57b357d1275d2011, 0xa24dd95dcb65a303}, 0x21eaf230bda3e8f1},
      {2, {0xb6f82fe1f927eb8c, 0x4f7934c3a81dc6a1}, 0xac44a623f4e633c7},
      {3, {0xb5f64a318ca517f1, 0x1c5f8fd0c6aaf73d}, 0x663751c4f325eec4},
      {4, {0x0f987654c37c86d6, 0xf08515a325fed580}, 0xcdc18445f018df0f},
      {7, {0x46c3dda50fd7eab5, 0x175c48e4c85df6da}, 0x089225d0146e7272},
      {8, {0xbecffc2aae02d71d, 0x351db96782c87313}, 0x831393027a9640a1},
      {15, {0x0f48197bcec5179c, 0x3fd82b8a862a351c}, 0x61e827d46b6b72b9},
      {16, {0x6cb2112dd111a2e2, 0x68e0be0b6e37a79c}, 0xfecb30197f21f90b},
      {17, {0xb3b5e372e8f692b3, 0xf1cb2bec7ffd4836}, 0xd0964b2e877368fe},
      {32, {0x2df45d3a40485731, 0x1eaee9a705caf993}, 0x2c999e4094678165},
      {36, {0xe484fea7dd13b50b, 0x3ac78c877278aeff}, 0x3ab2ec1f0a15a58e},
      {64, {0xce2503f5dc04e7b6, 0x74b13646b581b4ae}, 0x5aa621e7851babc0},
      {65, {0xb474daa4e7aab78d, 0x98f1892b3b09fb27}, 0x6ca4236ca92970fa},
      {100, {0x323a3b1f4b75e2f4, 0xa04226814a7cc25e}, 0x26568b92f90e3bd7},
      {128, {0x41c20cf829012d17, 0xf1243d191a3b7252}, 0xc6f05517f84ca2f0},
      {129, {0x06ec2edd1d995ac0, 0x7a0c6200692301cc}, 0x7246c147aec2545e},
      {256, {0xd4310488f992d773, 0x1026cdc484d11a4f}, 0xadfe478d8c1eff3f},
      {1000, {0xde86cb1d632c0daa, 0x8dcfd88b198d88c2}, 0x4e4f40b62efc54e8},
  };
  for (const auto& k : table) {
    INFO("size " << k.size);
    const std::string bytes = counting_bytes(k.size);
    const fingerprint f = fingerprint_of(bytes);
    CHECK(f.low == k.expected.low);
    CHECK(f.high == k.expected.high);
    CHECK(hash_bytes(bytes, 0x0123456789abcdef) == k.hash);
  }
}

TEST_CASE("hashes depend on the bytes and not on where they lie", "[hash]") {
  const std::string bytes = counting_bytes(300);
  for (std::size_t size : {0U, 1U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 32U, 33U, 64U, 65U, 128U, 129U, 300U}) {
    const std::string_view at_zero(bytes.data(), size);
    for (std::size_t shift = 1; shift < 16; ++shift) {
      const std::string moved = std::string(shift, 'x') + std::string(at_zero) + "tail";
      const std::string_view same(moved.data() + shift, size);
      CHECK(hash_bytes(same, 5) == hash_bytes(at_zero, 5));
      CHECK(fingerprint_of(same) == fingerprint_of(at_zero));
    }
  }
}

TEST_CASE("a view without an address has the hash of no bytes", "[hash]") {
  CHECK(hash_bytes(std::string_view{}, 9) == hash_bytes("", 9));
  CHECK(fingerprint_of(std::string_view{}) == fingerprint_of(""));
}

TEST_CASE("flipping one bit of the input flips about half of the output", "[hash]") {
  std::mt19937_64 random(1);
  for (std::size_t size : {1U, 2U, 3U, 4U, 8U, 12U, 16U, 17U, 31U, 36U, 64U, 65U, 127U, 128U, 200U, 256U}) {
    INFO("size " << size);
    // For each output bit of hash, low and high: how often it flipped.
    std::vector<int> flips(192, 0);
    int trials = 0;
    for (int round = 0; round < 40 || trials < 4000; ++round) {
      std::string bytes(size, '\0');
      for (auto& b : bytes) {
        b = static_cast<char>(random());
      }
      const std::uint64_t seed = random();
      const std::uint64_t h = hash_bytes(bytes, seed);
      const fingerprint f = fingerprint_of(bytes);
      const std::size_t bit = random() % (size * 8);
      for (std::size_t i : {bit, std::size_t{0}, size * 8 - 1}) {
        std::string other = bytes;
        other[i / 8] = static_cast<char>(other[i / 8] ^ (1 << (i % 8)));
        const std::uint64_t words[3] = {h ^ hash_bytes(other, seed), f.low ^ fingerprint_of(other).low,
                                        f.high ^ fingerprint_of(other).high};
        for (std::size_t k = 0; k < 192; ++k) {
          flips[k] += static_cast<int>(words[k / 64] >> (k % 64) & 1U);
        }
        ++trials;
      }
    }
    const auto [least, most] = std::minmax_element(flips.begin(), flips.end());
    CHECK(*least > trials * 42 / 100);
    CHECK(*most < trials * 58 / 100);
  }
}

TEST_CASE("a million similar keys have different hashes in every part", "[hash]") {
  constexpr std::uint32_t keys = 1'000'000;
  std::vector<std::uint64_t> hash;
  std::vector<std::uint64_t> low;
  std::vector<std::uint64_t> high;
  for (std::uint32_t i = 0; i < keys; ++i) {
    const std::string key = similar_key(i);
    hash.push_back(hash_bytes(key, 42));
    const fingerprint f = fingerprint_of(key);
    low.push_back(f.low);
    high.push_back(f.high);
  }
  for (auto* part : {&hash, &low, &high}) {
    std::sort(part->begin(), part->end());
    CHECK(std::adjacent_find(part->begin(), part->end()) == part->end());
    // Half of the bits meet as often as random ones would: 116 times expected, from above and from below.
    for (unsigned shift : {0U, 32U}) {
      std::vector<std::uint32_t> cut;
      for (auto h : *part) {
        cut.push_back(static_cast<std::uint32_t>(h >> shift));
      }
      std::sort(cut.begin(), cut.end());
      const auto distinct = std::unique(cut.begin(), cut.end()) - cut.begin();
      CHECK(keys - distinct > 60);
      CHECK(keys - distinct < 180);
    }
  }
}

TEST_CASE("a changed byte, length or order of blocks changes the fingerprint", "[hash]") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::size_t made = 0;
  const auto add = [&](const std::string& bytes) {
    const fingerprint f = fingerprint_of(bytes);
    seen.emplace(f.low, f.high);
    ++made;
  };
  for (std::size_t size = 0; size <= 400; ++size) {
    add(std::string(size, '\0'));
  }
  for (std::size_t i = 0; i < 300; ++i) {
    std::string bytes(300, '\0');
    for (int value = 1; value < 256; ++value) {
      bytes[i] = static_cast<char>(value);
      add(bytes);
    }
  }
  std::vector<int> blocks = {0, 1, 2, 3, 4, 5};
  do {
    std::string bytes;
    for (int b : blocks) {
      bytes += std::string(16, static_cast<char>('a' + b));
    }
    add(bytes);
  } while (std::next_permutation(blocks.begin(), blocks.end()));
  CHECK(seen.size() == made);
}

TEST_CASE("another seed gives another hash, so colliding keys can't be prepared", "[hash]") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    seen.insert(hash_bytes("order-17", seed));
  }
  CHECK(seen.size() == 10'000);

  // Pairs whose low 16 bits agree under one seed are spread again under another.
  std::vector<std::string> colliding;
  const std::uint64_t first = hash_bytes(similar_key(0), 1) & 0xffff;
  for (std::uint32_t i = 0; colliding.size() < 8; ++i) {
    if ((hash_bytes(similar_key(i), 1) & 0xffff) == first) {
      colliding.push_back(similar_key(i));
    }
  }
  std::set<std::uint64_t> spread;
  for (const auto& key : colliding) {
    spread.insert(hash_bytes(key, 2) & 0xffff);
  }
  CHECK(spread.size() >= 7);
}
