// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/sequence_table.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

using namespace onay::core;

namespace {

struct entry {
  std::uint64_t value = 0;
  explicit operator bool() const { return value != 0; }
};

constexpr std::uint64_t highest = std::numeric_limits<std::uint64_t>::max();

void check_same(sequence_table<entry>& table, const std::map<std::uint64_t, std::uint64_t>& model) {
  REQUIRE(table.size() == model.size());
  REQUIRE(table.empty() == model.empty());
  if (!model.empty()) {
    REQUIRE(table.lowest() == model.begin()->first);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> visited;
  table.for_each([&](std::uint64_t number, entry& e) { visited.emplace_back(number, e.value); });
  REQUIRE(std::equal(visited.begin(), visited.end(), model.begin(), model.end(),
                     [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
}

}  // namespace

TEST_CASE("an entry that stays behind is found, visited first and erased like the others", "[sequence_table]") {
  sequence_table<entry> table;
  table.insert(5, {50});
  for (std::uint64_t n = 6; n < 10'000; ++n) {
    table.insert(n, {n});
    if (n > 20) {
      REQUIRE(table.erase(n - 10));
    }
  }
  CHECK(table.lowest() == 5);
  CHECK(table.find(5)->value == 50);
  CHECK(table.find(9'999)->value == 9'999);
  CHECK(table.find(9'000) == nullptr);
  std::uint64_t first = 0;
  table.for_each([&](std::uint64_t n, entry&) { first = first == 0 ? n : first; });
  CHECK(first == 5);
  CHECK(table.erase(5));
  CHECK_FALSE(table.erase(5));
  CHECK(table.lowest() == 6);
}

TEST_CASE("a table that ran empty takes lower numbers again", "[sequence_table]") {
  sequence_table<entry> table;
  table.insert(1'000'000, {1});
  CHECK(table.erase(1'000'000));
  CHECK(table.empty());
  table.insert(3, {2});
  CHECK(table.find(3)->value == 2);
  CHECK(table.lowest() == 3);
  table.clear();
  CHECK(table.empty());
  CHECK(table.find(3) == nullptr);
  table.insert(2, {7});
  CHECK(table.lowest() == 2);
}

TEST_CASE("the highest numbers and zero live together", "[sequence_table]") {
  sequence_table<entry> table;
  table.insert(0, {1});
  table.insert(highest, {2});
  table.insert(highest - 1, {3});
  CHECK(table.find(0)->value == 1);
  CHECK(table.find(highest)->value == 2);
  CHECK(table.find(highest - 1)->value == 3);
  CHECK(table.find(1) == nullptr);
  CHECK(table.lowest() == 0);
  CHECK(table.erase(highest));
  CHECK(table.erase(0));
  CHECK(table.erase(highest - 1));
  CHECK(table.empty());
  table.insert(highest, {4});
  CHECK(table.find(0) == nullptr);
  CHECK(table.erase(highest));
  table.insert(1, {5});
  CHECK(table.lowest() == 1);
}

TEST_CASE("a part of the numbers is visited without the rest, and may be erased meanwhile", "[sequence_table]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    sequence_table<entry> table;
    std::map<std::uint64_t, std::uint64_t> model;
    const std::uint64_t start = seed % 3 == 0 ? highest - 999 : random() % 1'000;
    for (std::uint64_t i = 0; i < 1'000; ++i) {  // few at first, so that they become stragglers
      if (random() % 1'000 < (i < 200 ? 20 : i)) {
        table.insert(start + i, {i + 1});
        model[start + i] = i + 1;
      }
    }
    for (int round = 0; round < 20; ++round) {
      std::uint64_t first = start + random() % 1'000;
      std::uint64_t last = start + random() % 1'000;
      if (first > last) {
        std::swap(first, last);
      }
      if (random() % 4 == 0) {
        first = 0;
      }
      if (random() % 4 == 0) {
        last = highest;
      }
      std::vector<std::uint64_t> expected;
      for (auto it = model.lower_bound(first); it != model.end() && it->first <= last; ++it) {
        expected.push_back(it->first);
      }
      std::vector<std::uint64_t> visited;
      table.for_each_in(first, last, [&](std::uint64_t number, entry& e) {
        REQUIRE(e.value == model.at(number));
        visited.push_back(number);
        if (random() % 3 == 0) {
          table.erase(number);
          model.erase(number);
        }
      });
      REQUIRE(visited == expected);
      check_same(table, model);
    }
  }
}

TEST_CASE("values that can only be moved are kept", "[sequence_table]") {
  sequence_table<std::unique_ptr<int>> table;
  for (std::uint64_t n = 1; n <= 3'000; ++n) {
    table.insert(n, std::make_unique<int>(static_cast<int>(n)));
    if (n > 2 && n != 3) {
      table.erase(n - 1);
    }
  }
  CHECK(**table.find(1) == 1);
  CHECK(**table.find(2) == 2);
  CHECK(table.find(3) == nullptr);
  CHECK(**table.find(3'000) == 3'000);
}

TEST_CASE("random operations agree with a map", "[sequence_table]") {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    sequence_table<entry> table;
    std::map<std::uint64_t, std::uint64_t> model;
    // Of 100: how many erasures take the oldest, and how many insertions leave a gap or come late.
    const std::uint64_t in_order = random() % 101;
    const std::uint64_t gaps = random() % 30;
    const std::uint64_t gap_max = std::vector<std::uint64_t>{2, 50, 5'000, std::uint64_t{1} << 40U}[seed % 4];
    const std::uint64_t late = random() % 10;
    const std::size_t live = 1 + random() % 400;
    std::uint64_t next = seed % 5 == 0 ? highest - 1'000 : random() % 1'000;
    for (int step = 0; step < 5'000; ++step) {
      const bool insert = model.size() < live && random() % 100 < 60;
      if (insert) {
        std::uint64_t number = next;
        if (random() % 100 < gaps) {
          number += random() % gap_max;  // may wrap: then it is simply a low number
        }
        if (random() % 100 < late) {
          number = random() % std::max<std::uint64_t>(next, 1);
        }
        if (!model.contains(number)) {
          const std::uint64_t value = 1 + random() % 1'000;
          REQUIRE(table.insert(number, {value})->value == value);
          model[number] = value;
        }
        next = std::max(next, number) + 1;
      } else if (!model.empty()) {
        auto it = model.begin();
        if (random() % 100 >= in_order) {
          std::advance(it, random() % model.size());
        }
        REQUIRE(table.erase(it->first));
        REQUIRE_FALSE(table.erase(it->first));
        REQUIRE(table.find(it->first) == nullptr);
        model.erase(it);
      }
      const std::uint64_t asked = model.empty() || random() % 2 ? next - random() % 500 : model.rbegin()->first;
      const auto known = model.find(asked);
      const entry* found = std::as_const(table).find(asked);
      REQUIRE((found != nullptr) == (known != model.end()));
      if (found != nullptr) {
        REQUIRE(found->value == known->second);
      }
      if (step % 20 == 0) {
        check_same(table, model);
      }
      if (random() % 3'000 == 0) {
        table.clear();
        model.clear();
      }
    }
    check_same(table, model);
  }
}
