// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/inbox.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace onay::core;

namespace {

constexpr std::uint64_t sender = 7;
constexpr std::uint64_t epoch = 1;

inbox::record claim(inbox& box, std::string_view key) { return box.claim(key, box.hash(key), fingerprint_of(key)); }

inbox::record find(const inbox& box, std::string_view key) { return box.find(key, box.hash(key)); }

bool has(const inbox& box, std::string_view key) { return find(box, key) != inbox::none; }

// Claimed, completed and pinned by message `number`.
inbox::record add(inbox& box, std::string_view key, std::uint64_t number, std::string_view result = {}) {
  const inbox::record r = claim(box, key);
  box.complete(r, result);
  box.pin(r, sender, epoch, number);
  return r;
}

}  // namespace

TEST_CASE("a claimed key is found but isn't completed", "[inbox]") {
  inbox box(4, 1);
  CHECK(find(box, "a") == inbox::none);
  const auto r = claim(box, "a");
  CHECK(find(box, "a") == r);
  CHECK_FALSE(box.completed(r));
  CHECK(box.payload_of(r) == fingerprint_of("a"));
  CHECK(box.claimed() == 1);
  CHECK(box.free() == 3);
}

TEST_CASE("an abandoned claim leaves the key absent", "[inbox]") {
  inbox box(1, 1);
  box.abandon(claim(box, "a"));
  CHECK_FALSE(has(box, "a"));
  CHECK(box.size() == 0);
  CHECK(box.free() == 1);
  claim(box, "a");
  CHECK(has(box, "a"));
}

TEST_CASE("a completed record keeps the first result and the payload's fingerprint", "[inbox]") {
  inbox box(4, 1);
  const auto r = add(box, "a", 1, "the result");
  CHECK(box.completed(r));
  CHECK(box.result_of(r) == "the result");
  CHECK(box.payload_of(r) == fingerprint_of("a"));
  CHECK(find(box, "a") == r);
  const auto empty = add(box, "b", 2);
  CHECK(box.result_of(empty).empty());
  const std::string large(64 * 1024, 'x');
  const auto big = add(box, "c", 3, large);
  CHECK(box.result_of(big) == large);
  CHECK(find(box, "c") == big);
}

TEST_CASE("a recycled record has nothing of its predecessor", "[inbox]") {
  inbox box(1, 1);
  add(box, "a long key of the first operation", 1, std::string(5000, 'r'));
  box.confirm(sender, epoch, 1);
  const auto r = claim(box, "b");
  CHECK(box.result_of(r).empty());
  CHECK_FALSE(box.completed(r));
  CHECK(box.payload_of(r) == fingerprint_of("b"));
  box.complete(r, "short");
  CHECK(box.result_of(r) == "short");
  CHECK_FALSE(has(box, "a long key of the first operation"));
}

TEST_CASE("keys are compared as bytes", "[inbox]") {
  using namespace std::string_literals;
  inbox box(300, 1);
  std::mt19937_64 random(1);
  std::vector<std::string> keys = {""s, "\0"s, "\0\0"s, "a\0b"s, "a\0c"s, "a"s, "A"s, "a "s, std::string(255, '\xff')};
  for (int i = 0; i < 20; ++i) {
    std::string key(255, '\0');
    for (auto& c : key) {
      c = static_cast<char>(random());
    }
    keys.push_back(key);
  }
  std::set<inbox::record> records;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    REQUIRE_FALSE(has(box, keys[i]));
    records.insert(add(box, keys[i], i, "result " + std::to_string(i)));
  }
  CHECK(records.size() == keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CHECK(box.result_of(find(box, keys[i])) == "result " + std::to_string(i));
  }
}

TEST_CASE("keys with the same hash are different keys", "[inbox]") {
  inbox box(8, 1);
  const std::uint64_t hash = 99;
  const auto a = box.claim("a", hash, {1, 1});
  const auto b = box.claim("b", hash, {2, 2});
  CHECK(box.find("a", hash) == a);
  CHECK(box.find("b", hash) == b);
  CHECK(box.find("c", hash) == inbox::none);
  box.abandon(a);
  CHECK(box.find("a", hash) == inbox::none);
  CHECK(box.find("b", hash) == b);
}

TEST_CASE("the same key has different hashes under different seeds", "[inbox]") {
  CHECK(inbox(1, 1).hash("a") != inbox(1, 2).hash("a"));
}

TEST_CASE("a record with an unconfirmed settlement is never evicted", "[inbox]") {
  inbox box(100, 1);
  std::uint64_t number = 0;
  while (box.free() > 0) {
    ++number;
    add(box, "key " + std::to_string(number), number);
  }
  CHECK(number == 100);
  CHECK(box.pinned() == 100);
  // Each confirmation makes room for exactly one more, which evicts exactly that record.
  for (std::uint64_t confirmed : {50U, 3U, 99U}) {
    box.confirm(sender, epoch, confirmed);
    CHECK(box.free() == 1);
    CHECK(has(box, "key " + std::to_string(confirmed)));
    ++number;
    add(box, "key " + std::to_string(number), number);
    CHECK(box.free() == 0);
    CHECK_FALSE(has(box, "key " + std::to_string(confirmed)));
  }
  CHECK(box.size() == 100);
  for (std::uint64_t n = 1; n <= number; ++n) {
    CHECK(has(box, "key " + std::to_string(n)) == (n != 50 && n != 3 && n != 99));
  }
}

TEST_CASE("a claimed record is never evicted", "[inbox]") {
  inbox box(2, 1);
  const auto claimed = claim(box, "running");
  for (std::uint64_t n = 1; n <= 20; ++n) {
    add(box, std::to_string(n), n);
    box.confirm(sender, epoch, n);
  }
  CHECK(find(box, "running") == claimed);
  CHECK(box.size() == 2);
}

TEST_CASE("the oldest confirmed record makes room first", "[inbox]") {
  inbox box(3, 1);
  add(box, "a", 1);
  add(box, "b", 2);
  add(box, "c", 3);
  for (std::uint64_t n : {2U, 3U, 1U}) {
    box.confirm(sender, epoch, n);
  }
  claim(box, "d");
  CHECK_FALSE(has(box, "b"));
  claim(box, "e");
  CHECK_FALSE(has(box, "c"));
  CHECK(has(box, "a"));
  claim(box, "f");
  CHECK_FALSE(has(box, "a"));
  CHECK(box.free() == 0);
}

TEST_CASE("a record that was completed without a pin is evictable", "[inbox]") {
  inbox box(1, 1);
  box.complete(claim(box, "a"), "");
  CHECK(box.free() == 1);
  claim(box, "b");
  CHECK_FALSE(has(box, "a"));
}

TEST_CASE("a record with several pins stays until all of them are confirmed", "[inbox]") {
  inbox box(1, 1);
  const auto r = add(box, "a", 1);
  box.pin(r, sender, epoch, 2);
  box.pin(r, sender + 1, 5, 1);
  box.pin(r, sender, epoch, 1);  // repeated: counts once
  CHECK(box.pinned() == 1);
  CHECK(box.pins_of(sender) == 2);
  CHECK(box.pins_of(sender + 1) == 1);
  box.confirm(sender, epoch, 1);
  box.confirm(sender, epoch, 1);  // unknown by now
  box.confirm(sender + 1, 5, 1);
  CHECK(box.free() == 0);
  box.confirm(sender, epoch, 2);
  CHECK(box.free() == 1);
  CHECK(has(box, "a"));
}

TEST_CASE("a confirmed record that a duplicate pins again is held again", "[inbox]") {
  inbox box(2, 1);
  const auto a = add(box, "a", 1, "first");
  add(box, "b", 2);
  box.confirm(sender, epoch, 1);
  box.confirm(sender, epoch, 2);
  box.pin(a, sender, epoch, 3);
  CHECK(box.free() == 1);
  claim(box, "c");
  CHECK_FALSE(has(box, "b"));
  CHECK(box.result_of(find(box, "a")) == "first");
}

TEST_CASE("a message that pins another record lets go of the first", "[inbox]") {
  inbox box(4, 1);
  add(box, "a", 1);
  const auto b = add(box, "b", 2);
  box.pin(b, sender, epoch, 1);
  CHECK(box.pinned() == 1);
  CHECK(box.pins_of(sender) == 2);
  box.confirm(sender, epoch, 1);
  CHECK(box.pinned() == 1);
  box.confirm(sender, epoch, 2);
  CHECK(box.pinned() == 0);
}

TEST_CASE("confirmations that name nothing known change nothing", "[inbox]") {
  inbox box(2, 1);
  add(box, "a", 5);
  box.confirm(sender, epoch, 4);
  box.confirm(sender, epoch + 1, 5);
  box.confirm(sender + 1, epoch, 5);
  box.confirm_below(sender, epoch, 5);
  box.confirm_below(sender + 1, epoch, 100);
  CHECK(box.forget_sender(sender + 1) == 0);
  CHECK(box.pinned() == 1);
}

TEST_CASE("everything below the lowest number held counts as confirmed", "[inbox]") {
  inbox box(10, 1);
  for (std::uint64_t n = 1; n <= 10; ++n) {
    add(box, std::to_string(n), n);
  }
  box.confirm_below(sender, epoch, 8);
  CHECK(box.pins_of(sender) == 3);
  CHECK(box.free() == 7);
  box.confirm_below(sender, epoch, ~std::uint64_t{0});
  CHECK(box.pins_of(sender) == 0);
  CHECK(box.free() == 10);
  CHECK(box.size() == 10);
}

TEST_CASE("a new epoch of a sender confirms all of the old one", "[inbox]") {
  inbox box(4, 1);
  const auto a = add(box, "a", 1000);
  add(box, "b", 1001);
  SECTION("when it is heard of") { box.confirm_below(sender, epoch + 1, 1); }
  SECTION("when it pins") {
    box.pin(a, sender, epoch + 1, 1);
    CHECK(box.pins_of(sender) == 1);
    box.confirm(sender, epoch + 1, 1);
  }
  CHECK(box.pins_of(sender) == 0);
  CHECK(box.pinned() == 0);
  CHECK(box.free() == 4);
}

TEST_CASE("a forgotten sender loses its pins, and they are counted", "[inbox]") {
  inbox box(4, 1);
  const auto a = add(box, "a", 1);
  add(box, "b", 2);
  box.pin(a, sender + 1, epoch, 1);
  CHECK(box.forget_sender(sender) == 2);
  CHECK(box.pinned() == 1);
  CHECK(box.pins_of(sender) == 0);
  CHECK(box.forget_sender(sender) == 0);
}

TEST_CASE("the pins of a sender are visited by rising number", "[inbox]") {
  inbox box(10, 1);
  for (std::uint64_t n : {5U, 2U, 9U, 7U}) {
    add(box, std::to_string(n), n, "result " + std::to_string(n));
  }
  std::vector<std::pair<std::uint64_t, std::string>> visited;
  box.for_each_pin(sender, [&](std::uint64_t of_epoch, std::uint64_t number, std::string_view result) {
    CHECK(of_epoch == epoch);
    visited.emplace_back(number, result);
  });
  CHECK(visited == std::vector<std::pair<std::uint64_t, std::string>>{
                       {2, "result 2"}, {5, "result 5"}, {7, "result 7"}, {9, "result 9"}});
  box.for_each_pin(sender + 1, [](std::uint64_t, std::uint64_t, std::string_view) { FAIL("has no pins"); });
}

TEST_CASE("a stuck message doesn't hold back the records of those after it", "[inbox]") {
  inbox box(50, 1);
  add(box, "stuck", 1);
  for (std::uint64_t n = 2; n < 20'000; ++n) {
    add(box, std::to_string(n), n);
    if (n > 30) {
      box.confirm(sender, epoch, n - 20);
    }
  }
  CHECK(has(box, "stuck"));
  CHECK(box.size() == 50);
  box.confirm(sender, epoch, 1);
  CHECK(box.pinned() == box.pins_of(sender));
}

// The naive model: keys in maps, pins as a set of triples, confirmed keys in a list by age.
TEST_CASE("random operations agree with a naive model", "[inbox]") {
  struct model_record {
    bool completed = false;
    std::string result;
    fingerprint payload;
    inbox::record record = inbox::none;
    std::set<std::pair<std::uint64_t, std::uint64_t>> pins;  // sender, number
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto records_max = static_cast<std::uint32_t>(1 + random() % (seed % 3 == 0 ? 3'000 : 30));
    const std::uint64_t key_count = 1 + random() % (records_max * 2);
    const bool poor_hash = seed % 4 == 0;
    inbox box(records_max, seed);
    std::map<std::string, model_record> model;
    std::deque<std::string> confirmed;  // oldest first
    std::map<std::uint64_t, std::uint64_t> epochs;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> pins;  // sender, number -> key

    const auto unpin = [&](const std::pair<std::uint64_t, std::uint64_t>& p) {
      auto it = pins.find(p);
      auto& m = model.at(it->second);
      m.pins.erase(p);
      if (m.pins.empty()) {
        confirmed.push_back(it->second);
      }
      pins.erase(it);
    };
    // Those of `of` with a number below `below`, in rising order.
    const auto unpin_below = [&](std::uint64_t of, std::optional<std::uint64_t> below) {
      std::uint64_t count = 0;
      for (auto it = pins.lower_bound({of, 0}); it != pins.end() && it->first.first == of;) {
        const auto p = it->first;
        ++it;
        if (!below || p.second < *below) {
          unpin(p);
          ++count;
        }
      }
      return count;
    };
    const auto counts = [&] {
      std::uint32_t claimed = 0;
      std::uint32_t pinned = 0;
      for (const auto& [key, m] : model) {
        claimed += m.completed ? 0U : 1U;
        pinned += m.pins.empty() ? 0U : 1U;
      }
      return std::pair{claimed, pinned};
    };

    std::uint32_t claimed = 0;
    std::uint32_t pinned = 0;
    for (int step = 0; step < 3'000; ++step) {
      const std::string key = "key " + std::to_string(random() % key_count) + std::string(random() % 2 ? 0 : 40, '.');
      const std::uint64_t hash = poor_hash ? box.hash(key) % 3 : box.hash(key);
      const std::uint64_t of = random() % 3;
      const std::uint64_t number = random() % 200;
      auto known = model.find(key);
      REQUIRE(box.find(key, hash) == (known == model.end() ? inbox::none : known->second.record));
      switch (random() % 10) {
        default:  // towards completed and pinned
          if (known == model.end()) {
            if (claimed + pinned < records_max) {
              if (model.size() == records_max) {
                model.erase(confirmed.front());
                confirmed.pop_front();
              }
              auto& m = model[key];
              m.payload = {random(), random()};
              box.prefetch(hash);
              m.record = box.claim(key, hash, m.payload);
            }
          } else if (!known->second.completed) {
            if (random() % 4 == 0) {
              box.abandon(known->second.record);
              model.erase(known);
            } else {
              known->second.completed = true;
              known->second.result = std::string(random() % 3 ? random() % 30 : random() % 300, 'r');
              box.complete(known->second.record, known->second.result);
              confirmed.push_back(key);
            }
          } else {
            if (!epochs.contains(of)) {
              epochs[of] = random();
            } else if (random() % 50 == 0) {
              unpin_below(of, {});
              epochs[of] = random();
            }
            box.pin(known->second.record, of, epochs[of], number);
            const std::pair p{of, number};
            if (auto old = pins.find(p); old == pins.end() || old->second != key) {
              if (old != pins.end()) {
                unpin(p);
              }
              if (known->second.pins.empty()) {
                confirmed.erase(std::find(confirmed.begin(), confirmed.end(), key));
              }
              known->second.pins.insert(p);
              pins[p] = key;
            }
          }
          break;
        case 0:
          box.confirm(of, epochs[of], number);
          if (pins.contains({of, number})) {
            unpin({of, number});
          }
          break;
        case 1:
          if (random() % 5 == 0) {
            if (random() % 10 == 0) {
              unpin_below(of, {});
              epochs[of] = random();
            }
            box.confirm_below(of, epochs[of], number);
            unpin_below(of, number);
          }
          break;
        case 2:
          if (random() % 20 == 0) {
            REQUIRE(box.forget_sender(of) == unpin_below(of, {}));
          }
          break;
      }
      std::tie(claimed, pinned) = counts();
      REQUIRE(box.size() == model.size());
      REQUIRE(box.claimed() == claimed);
      REQUIRE(box.pinned() == pinned);
      REQUIRE(box.free() == records_max - claimed - pinned);
      if (step % 100 == 0) {
        for (const auto& [k, m] : model) {
          const auto r = box.find(k, poor_hash ? box.hash(k) % 3 : box.hash(k));
          REQUIRE(r == m.record);
          REQUIRE(box.completed(r) == m.completed);
          REQUIRE(box.payload_of(r) == m.payload);
          REQUIRE(box.result_of(r) == m.result);
        }
        for (std::uint64_t s = 0; s < 3; ++s) {
          std::vector<std::pair<std::uint64_t, std::string>> actual;
          std::vector<std::pair<std::uint64_t, std::string>> expected;
          box.for_each_pin(s, [&](std::uint64_t e, std::uint64_t n, std::string_view result) {
            REQUIRE(e == epochs[s]);
            actual.emplace_back(n, result);
          });
          for (auto it = pins.lower_bound({s, 0}); it != pins.end() && it->first.first == s; ++it) {
            expected.emplace_back(it->first.second, model.at(it->second).result);
          }
          REQUIRE(actual == expected);
          REQUIRE(box.pins_of(s) == expected.size());
        }
      }
    }
  }
}

TEST_CASE("senders that never come back don't pile up", "[inbox]") {
  inbox box(1, 1);
  const auto r = add(box, "a", 1);
  for (std::uint64_t s = 100; s < 5'100; ++s) {
    box.pin(r, s, 1, 1);
    box.confirm(s, 1, 1);
  }
  CHECK(box.pins_of(sender) == 1);
  CHECK(box.pinned() == 1);
  box.confirm(sender, epoch, 1);
  CHECK(box.free() == 1);
}

TEST_CASE("the largest limit takes no memory before it is used", "[inbox]") {
  inbox box(inbox::none - 1, 1);
  CHECK(box.free() == inbox::none - 1);
  for (std::uint64_t n = 1; n <= 5'000; ++n) {
    add(box, std::to_string(n), n);
  }
  CHECK(box.size() == 5'000);
  CHECK(has(box, "4999"));
}
