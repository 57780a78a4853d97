// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/hash_index.hpp"

#include "support/catch.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace onay::core;

namespace {

const auto any = [](std::uint32_t) { return true; };
auto is(std::uint32_t value) {
  return [value](std::uint32_t v) { return v == value; };
}

}  // namespace

TEST_CASE("an empty index finds nothing and takes no memory to ask", "[hash_index]") {
  hash_index<std::uint32_t> index;
  CHECK(index.find(1, any) == nullptr);
  CHECK_FALSE(index.erase(1, any));
  index.prefetch(1);
  CHECK(index.size() == 0);
}

TEST_CASE("equal hashes are told apart by the value", "[hash_index]") {
  hash_index<std::uint32_t> index(4);
  index.insert(7, 70);
  index.insert(7, 71);
  index.insert(7, 72);
  CHECK(*index.find(7, is(71)) == 71);
  CHECK(index.erase(7, is(70)));
  CHECK(index.find(7, is(70)) == nullptr);
  CHECK(*index.find(7, is(72)) == 72);
  CHECK(index.size() == 2);
}

TEST_CASE("a hash of zero is a hash like any other", "[hash_index]") {
  hash_index<std::uint32_t> index;
  index.insert(0, 1);
  index.insert(~std::uint64_t{0}, 2);  // what zero is kept as
  CHECK(*index.find(0, is(1)) == 1);
  CHECK(*index.find(~std::uint64_t{0}, is(2)) == 2);
  CHECK(index.erase(0, is(1)));
  CHECK(index.find(0, is(1)) == nullptr);
  CHECK(index.size() == 1);
}

TEST_CASE("a found value can be changed in place, and read through const", "[hash_index]") {
  hash_index<std::uint32_t> index;
  index.insert(5, 1);
  *index.find(5, any) = 2;
  CHECK(*std::as_const(index).find(5, any) == 2);
}

TEST_CASE("a moved-from index is empty and usable", "[hash_index]") {
  hash_index<std::uint32_t> index;
  index.insert(5, 1);
  hash_index<std::uint32_t> other(std::move(index));
  CHECK(index.size() == 0);  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK(index.find(5, any) == nullptr);
  index.insert(6, 2);
  other = std::move(index);
  CHECK(other.find(5, any) == nullptr);
  CHECK(*other.find(6, any) == 2);
  other.clear();
  CHECK(other.size() == 0);
  CHECK(other.find(6, any) == nullptr);
}

// Few distinct hashes with long runs that wrap around the end: where backward shifting goes wrong if it does.
TEST_CASE("random operations agree with a multiset of pairs", "[hash_index]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const std::uint64_t hashes = std::vector<std::uint64_t>{3, 20, 300, 100'000}[seed % 4];
    const std::uint64_t values = 1 + random() % 8;
    const std::size_t most = 1 + random() % 600;
    hash_index<std::uint32_t> index(random() % 2 ? 0 : most);
    std::multiset<std::pair<std::uint64_t, std::uint32_t>> model;
    const auto draw = [&] {
      // Half of them at home in the last slots, so that runs wrap. Never ~0, which can't be told from 0.
      const std::uint64_t h = random() % hashes;
      return std::pair{random() % 2 ? h : ~(h + 1), static_cast<std::uint32_t>(random() % values)};
    };
    for (int step = 0; step < 4000; ++step) {
      const auto entry = draw();
      const auto [hash, value] = entry;
      if (random() % 100 < 55 && model.size() < most) {
        index.insert(hash, value);
        model.insert(entry);
      } else {
        const auto it = model.find(entry);
        REQUIRE(index.erase(hash, is(value)) == (it != model.end()));
        if (it != model.end()) {
          model.erase(it);
        }
      }
      const auto asked = draw();
      REQUIRE((index.find(asked.first, is(asked.second)) != nullptr) == model.contains(asked));
      REQUIRE(index.size() == model.size());
      if (step % 500 == 0) {
        for (const auto& [h, v] : model) {
          REQUIRE(index.find(h, is(v)) != nullptr);
        }
      }
    }
    while (!model.empty()) {  // each entry exactly as often as it was put in
      REQUIRE(index.erase(model.begin()->first, is(model.begin()->second)));
      model.erase(model.begin());
    }
    REQUIRE(index.size() == 0);
  }
}
