// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/histogram.hpp"
#include "broker-sim/keys.hpp"
#include "broker-sim/synthetic.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>

using namespace onay::sim;

namespace {

double share_of(const synthetic_options& o, fate wanted) {
  unsigned hits = 0;
  constexpr unsigned keys = 100'000;
  for (std::uint64_t id = 1; id <= keys; ++id) hits += fate_of(o, id, 1) == wanted ? 1U : 0U;
  return static_cast<double>(hits) / keys;
}

}  // namespace

TEST_CASE("a message's fate depends on seed, key and attempt alone") {
  const synthetic_options o{.fail = 0.5, .seed = 7}, other{.fail = 0.5, .seed = 8};
  bool attempts_differ = false, seeds_differ = false;
  for (std::uint64_t id = 0; id < 100; ++id) {
    CHECK(fate_of(o, id, 1) == fate_of(o, id, 1));
    attempts_differ = attempts_differ || fate_of(o, id, 1) != fate_of(o, id, 2);
    seeds_differ = seeds_differ || fate_of(o, id, 1) != fate_of(other, id, 1);
  }
  CHECK(attempts_differ);
  CHECK(seeds_differ);
}

TEST_CASE("fates come as often as asked for") {
  CHECK(std::abs(share_of({.fail = 0.05}, fate::fail) - 0.05) < 0.005);
  CHECK(std::abs(share_of({.reject = 0.2}, fate::reject) - 0.2) < 0.01);
  CHECK(share_of({}, fate::accept) == 1);
  CHECK(share_of({.fail = 1}, fate::fail) == 1);
}

TEST_CASE("a rejected message is rejected at every attempt") {
  const synthetic_options o{.fail = 0.5, .reject = 0.1};
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const bool first = fate_of(o, id, 1) == fate::reject;
    for (std::uint32_t attempt = 2; attempt < 5; ++attempt) CHECK((fate_of(o, id, attempt) == fate::reject) == first);
  }
}

TEST_CASE("poison goes before everything else") {
  const synthetic_options o{.fail = 1, .reject = 1, .poison = {3, 9}};
  CHECK(fate_of(o, 3, 1) == fate::kill);
  CHECK(fate_of(o, 9, 4) == fate::kill);
  CHECK(fate_of(o, 4, 1) == fate::reject);
}

TEST_CASE("poison is chosen by the seed, without repetition") {
  const auto chosen = choose_poison(1, 1000, 50);
  CHECK(chosen.size() == 50);
  CHECK(std::is_sorted(chosen.begin(), chosen.end()));
  CHECK(std::adjacent_find(chosen.begin(), chosen.end()) == chosen.end());
  CHECK(chosen.back() < 1000);
  CHECK(choose_poison(1, 1000, 50) == chosen);
  CHECK(choose_poison(2, 1000, 50) != chosen);
  CHECK(choose_poison(1, 3, 50).size() == 3);
  CHECK(choose_poison(1, 3, 0).empty());
}

TEST_CASE("numbered keys give their number") {
  CHECK(id_of("m000000042", key_style::numbered) == 42);
  CHECK(id_of("17", key_style::numbered) == 17);
  CHECK(id_of("17", key_style::free) != 17);
  CHECK_FALSE(number_of("m"));
  CHECK_FALSE(number_of(""));
  CHECK_FALSE(number_of("m12x"));
  CHECK_FALSE(number_of("99999999999999999999"));
}

TEST_CASE("a catalog of free keys joins repetitions") {
  const key_catalog keys(std::vector<std::uint64_t>{500, 100, 500, 300});
  CHECK(keys.messages() == 4);
  CHECK(keys.operations() == 3);
  CHECK(keys.operation_of(0) == keys.operation_of(2));
  CHECK(keys.id_of_operation(keys.operation_of(3)) == 300);
  CHECK(keys.find(100) == keys.operation_of(1));
  CHECK_FALSE(keys.find(200));
}

TEST_CASE("a catalog of numbers begins at one") {
  const key_catalog keys(10);
  CHECK_FALSE(keys.find(0));
  CHECK(keys.find(1) == 0U);
  CHECK(keys.find(10) == 9U);
  CHECK_FALSE(keys.find(11));
  CHECK(keys.id_of_operation(9) == 10);
}

TEST_CASE("percentiles are within three per cent") {
  histogram h;
  CHECK(h.percentile(0.5) == 0);
  for (std::uint64_t us = 1; us <= 100'000; ++us) h.add(us);
  CHECK(h.total() == 100'000);
  for (const double share : {0.1, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = share * 100'000;
    CAPTURE(share, h.percentile(share));
    CHECK(std::abs(h.percentile(share) - exact) < exact * 0.03 + 1);
  }
  histogram extremes;
  extremes.add(0);
  CHECK(extremes.percentile(1) == 0);
  extremes.add(~std::uint64_t{0});
  CHECK(extremes.percentile(1) > 1e19);
}
