// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/ranges.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <vector>

using namespace onay::core;

TEST_CASE("rising values are gathered into ranges", "[ranges]") {
  ranges r;
  for (std::uint64_t v : {1U, 2U, 3U, 5U, 9U, 10U}) {
    r.append(v);
  }
  CHECK(r == ranges{{1, 3}, {5, 5}, {9, 10}});
  r.append({11, 20});
  r.append({30, 31});
  CHECK(r == ranges{{1, 3}, {5, 5}, {9, 20}, {30, 31}});
  CHECK(r.range_count() == 4);
}

TEST_CASE("the highest number is a member like any other", "[ranges]") {
  constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();
  ranges r{{highest - 1, highest - 1}};
  r.append(highest);
  CHECK(r == ranges{{highest - 1, highest}});
  CHECK(r.contains(highest));
  CHECK_FALSE(r.contains(0));
}

TEST_CASE("cleared ranges contain nothing", "[ranges]") {
  ranges r{{1, 9}};
  r.clear();
  CHECK(r.empty());
  CHECK_FALSE(r.contains(1));
}

TEST_CASE("ranges made from shuffled values contain exactly these", "[ranges]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::set<std::uint64_t> model;
    const std::uint64_t count = random() % 100;
    while (model.size() < count) {
      model.insert(random() % 200);
    }
    std::vector<std::uint64_t> values(model.begin(), model.end());
    std::shuffle(values.begin(), values.end(), random);
    const ranges r = ranges::from(values);
    for (std::uint64_t v = 0; v < 220; ++v) {
      REQUIRE(r.contains(v) == model.contains(v));
    }
    for (std::size_t i = 0; i < r.range_count(); ++i) {
      REQUIRE(r.list()[i].first <= r.list()[i].last);
      REQUIRE((i == 0 || r.list()[i - 1].last + 1 < r.list()[i].first));
    }
  }
}
