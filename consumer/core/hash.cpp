// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// One construction for both: two words of the input are masked, multiplied to 128 bits, and the product is fed back
// into a state of 128 bits; 16 bytes cost one multiplication. The end folds products by xor. (Multiply and fold is the
// technique of the wyhash family; constants, state and chaining are our own.) What the chaining is for:
// - the masks depend on the seed, so a peer that knows the constants can't place words that cancel a mask and make the
//   word beside them count for nothing;
// - both halves of the product are kept, and the words themselves are added, so that a step stays reversible in its
//   words when a factor happens to be zero: two payloads don't meet because of one unlucky word.
// CRC32C and std::hash were rejected: the first is linear (collisions by design), the second differs by platform.
#include "core/hash.hpp"

#include <bit>
#include <cstddef>
#include <cstring>

namespace onay::core {

namespace {

// Random odd numbers with four bits set in every byte, about 32 bits apart from each other. Part of the stored format
// of fingerprints: never change them.
constexpr std::uint64_t masks[4] = {0x2b5c5a2d554da5a5, 0xc9a6b896b1c54d17, 0xacb4e29a8eaa3335, 0x17272b393571a939};
constexpr std::uint64_t start_low = 0x39d2b21e955ad8e1;
constexpr std::uint64_t start_high = 0x6ad8b82b63e81b55;
constexpr std::uint64_t finish_a = 0xd466d22b745956a9;
constexpr std::uint64_t finish_b = 0xac71b2637265e8c3;
constexpr std::uint64_t finish_c = 0x636a71966c99e41b;
constexpr std::uint64_t finish_d = 0x4b0f78ca2b5347e1;
// What fingerprints use for a seed; the first digits of the fraction of pi.
constexpr std::uint64_t fingerprint_seed = 0x243f6a8885a308d3;

struct product {
  std::uint64_t low;
  std::uint64_t high;
};

product multiply(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__) && !defined(ONAY_PORTABLE_MULTIPLY)
  __extension__ using wide = unsigned __int128;
  const wide p = static_cast<wide>(a) * b;
  return {static_cast<std::uint64_t>(p), static_cast<std::uint64_t>(p >> 64U)};
#else
  constexpr std::uint64_t half = 0xffffffff;
  const std::uint64_t low = (a & half) * (b & half);
  const std::uint64_t mid_1 = (a >> 32U) * (b & half) + (low >> 32U);
  const std::uint64_t mid_2 = (a & half) * (b >> 32U) + (mid_1 & half);
  return {mid_2 << 32U | (low & half), (a >> 32U) * (b >> 32U) + (mid_1 >> 32U) + (mid_2 >> 32U)};
#endif
}

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const product p = multiply(a, b);
  return p.low ^ p.high;
}

// Little-endian on every machine.
template <class Word>
std::uint64_t read(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    if constexpr (sizeof(Word) == 8) {
      word = __builtin_bswap64(word);
    } else {
      word = __builtin_bswap32(word);
    }
  }
  return word;
}

struct words {
  std::uint64_t a;
  std::uint64_t b;
};

words read_16(const char* at) { return {read<std::uint64_t>(at), read<std::uint64_t>(at + 8)}; }

// Up to 16 bytes, so that different bytes of one length give different words: the reads overlap instead of branching on
// every length.
words read_short(const char* at, std::size_t size) {
  if (size >= 8) {
    return {read<std::uint64_t>(at), read<std::uint64_t>(at + size - 8)};
  }
  if (size >= 4) {
    return {read<std::uint32_t>(at), read<std::uint32_t>(at + size - 4)};
  }
  if (size > 0) {
    const auto byte = [at](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(at[i])}; };
    return {byte(0) << 16U | byte(size / 2) << 8U | byte(size - 1), 0};
  }
  return {0, 0};
}

struct state {
  std::uint64_t low;
  std::uint64_t high;
};

void absorb(state& s, std::uint64_t mask, const words& w) {
  const product p = multiply(w.a ^ mask ^ s.high, w.b ^ s.low);
  s.low = (s.low ^ w.a) + p.high;
  s.high = (s.high ^ w.b) + p.low;
}

// Everything but the last step.
state absorb_all(std::string_view bytes, std::uint64_t seed) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  state s{std::rotl(seed, 32) ^ start_low, start_high};
  const std::uint64_t mask = masks[0] ^ seed;
  if (left <= 16) {
    absorb(s, mask, read_short(at, left));
    return s;
  }
  if (left > 64) {
    // Four lanes, because a multiplication takes about four cycles until its result is there but a new one can start
    // every cycle.
    state s1 = s;
    state s2 = s;
    state s3 = s;
    for (; left > 64; at += 64, left -= 64) {
      absorb(s, mask, read_16(at));
      absorb(s1, masks[1] ^ seed, read_16(at + 16));
      absorb(s2, masks[2] ^ seed, read_16(at + 32));
      absorb(s3, masks[3] ^ seed, read_16(at + 48));
    }
    s.low = (s.low ^ std::rotl(s1.low, 17)) + (std::rotl(s2.low, 31) ^ std::rotl(s3.low, 47));
    s.high = (s.high ^ std::rotl(s1.high, 23)) + (std::rotl(s2.high, 37) ^ std::rotl(s3.high, 53));
  }
  for (; left > 16; at += 16, left -= 16) {
    absorb(s, mask, read_16(at));
  }
  absorb(s, mask, read_16(at + left - 16));  // overlaps bytes that were added already
  return s;
}

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  const state s = absorb_all(bytes, seed);
  return fold(s.low ^ finish_a ^ bytes.size(), s.high ^ finish_b);
}

fingerprint fingerprint_of(std::string_view bytes) {
  const state s = absorb_all(bytes, fingerprint_seed);
  return {fold(s.low ^ finish_a ^ bytes.size(), s.high ^ finish_b),
          fold(s.low ^ finish_c, s.high ^ finish_d ^ bytes.size())};
}

}  // namespace onay::core
