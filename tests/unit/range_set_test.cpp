// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/range_set.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>

using namespace onay::core;

namespace {

constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();

void check_same(const range_set& actual, const std::set<std::uint64_t>& model, std::uint64_t below) {
  REQUIRE(actual.value_count() == model.size());
  REQUIRE(actual.empty() == model.empty());
  ranges expected;
  for (auto v : model) {
    expected.append(v);
  }
  REQUIRE(actual.as_ranges() == expected);
  REQUIRE(actual.range_count() == expected.range_count());
  for (std::uint64_t v = 0; v < below; ++v) {
    REQUIRE(actual.contains(v) == model.contains(v));
  }
  if (!model.empty()) {
    REQUIRE(actual.lowest() == *model.begin());
  }
}

}  // namespace

TEST_CASE("ranges that touch or overlap become one", "[range_set]") {
  range_set s;
  s.insert({10, 19});
  s.insert({30, 39});
  CHECK(s.range_count() == 2);
  s.insert({20, 29});
  CHECK(s.as_ranges() == ranges{{10, 39}});
  s.insert({15, 20});
  CHECK(s.value_count() == 30);
  s.insert({5, 50});
  CHECK(s.as_ranges() == ranges{{5, 50}});
}

TEST_CASE("erasing a value in the middle splits its range", "[range_set]") {
  range_set s;
  s.insert({1, 5});
  CHECK(s.erase(3));
  CHECK_FALSE(s.erase(3));
  CHECK(s.as_ranges() == ranges{{1, 2}, {4, 5}});
  CHECK(s.erase(1));
  CHECK(s.erase(5));
  CHECK(s.erase(2));
  CHECK(s.as_ranges() == ranges{{4, 4}});
  CHECK(s.erase(4));
  CHECK(s.empty());
}

TEST_CASE("the ends of the number range are ordinary members", "[range_set]") {
  range_set s;
  s.insert({highest - 2, highest});
  s.insert(0);
  CHECK(s.range_count() == 2);
  s.insert(highest);
  CHECK(s.value_count() == 4);
  s.insert(highest - 3);
  CHECK(s.as_ranges() == ranges{{0, 0}, {highest - 3, highest}});
  CHECK(s.contains(highest));
  CHECK(s.erase(highest));
  CHECK_FALSE(s.contains(highest));
  CHECK(s.erase(0));
  CHECK(s.as_ranges() == ranges{{highest - 3, highest - 1}});
}

TEST_CASE("clearing leaves an empty set", "[range_set]") {
  range_set s;
  s.insert({3, 9});
  s.clear();
  CHECK(s.empty());
  CHECK(s.value_count() == 0);
  CHECK(s.as_ranges().empty());
}

TEST_CASE("random operations agree with a set of values", "[range_set]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const std::uint64_t span = 20 + random() % 150;
    range_set s;
    std::set<std::uint64_t> model;
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t value = random() % span;
      if (random() % 3 == 0) {
        const std::uint64_t last = std::min(span - 1, value + random() % 12);
        s.insert({value, last});
        for (auto v = value; v <= last; ++v) {
          model.insert(v);
        }
      } else {
        REQUIRE(s.erase(value) == (model.erase(value) > 0));
      }
      check_same(s, model, span);
    }
  }
}
