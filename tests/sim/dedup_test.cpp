// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Operation keys: cases C20, C21, C22, C23, C24.
#include "support/catch.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

namespace {

// A second sender, whose messages may carry the same operation keys.
struct second_sender {
  explicit second_sender(pair& p, const core::sender_config& like) : node(p.net, config(like), 79) {
    p.net.bind("source2", &node, 0);
    p.consumers[0]->core.add_connection(p.net.instant(), {1, ""});
    p.net.dial("source2", p.consumers[0].get(), 1);
    p.others.push_back(&node);
  }
  static core::sender_config config(core::sender_config c) {
    c.logical_id = "s2";
    c.instance = 77;
    c.sender_id = 78;
    c.epoch = 1;
    return c;
  }
  sender_node node;
};

}  // namespace

TEST_CASE("C20: two messages with one key at the same moment run once, and both are accepted with the first result") {
  pair::options o;
  pair p(o);
  second_sender other(p, o.sender);
  p.handler = [](const core::held& d) { return run_plan{50ms, accept("result of " + std::string(d.key))}; };
  std::vector<std::shared_ptr<sent_message>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(p.send("k" + std::to_string(i)));
    all.push_back(other.node.send("k" + std::to_string(i)));
  }
  REQUIRE(p.drive_until(
      [&] { return std::all_of(all.begin(), all.end(), [](const auto& s) { return s->end.has_value(); }); }, 60s));
  CHECK(p.effects.overlap_max == 1);
  for (const auto& s : all) {
    REQUIRE(s->end->state == final_state::accepted);
    REQUIRE(s->end->result == "result of " + s->key);
    REQUIRE(p.effects.effect(s->key) == 1);
    REQUIRE(p.effects.started(s->key) == 1);
  }
  CHECK(p.letters.empty());
}

TEST_CASE("C24: a duplicate of a running key is answered only when the first run is decided") {
  pair::options o;
  pair p(o);
  second_sender other(p, o.sender);
  int runs = 0;
  p.handler = [&](const core::held&) {
    return run_plan{500ms, ++runs == 1 ? failure(error_class::transient, "once") : accept()};
  };
  auto first = p.send("k");
  p.drive(50ms);
  auto second = other.node.send("k");
  p.drive(300ms);
  CHECK(!second->end);
  REQUIRE(p.drive_until([&] { return first->end && second->end; }, 10s));
  CHECK(first->end->state == final_state::accepted);
  CHECK(second->end->state == final_state::accepted);
  CHECK(p.effects.started("k") == 2);
  CHECK(p.effects.effect("k") == 1);
}

TEST_CASE("a duplicate doesn't wait for a stuck run longer than a lease, and burns no attempt") {
  pair::options o;
  o.consumer.attempt_timeout = 200ms;
  pair p(o);
  second_sender other(p, o.sender);
  p.handler = [](const core::held&) {
    run_plan plan{20s};
    plan.obeys_stop = false;
    return plan;
  };
  p.send("k");
  p.drive(50ms);
  auto second = other.node.send("k");
  REQUIRE(p.drive_until([&] { return second->end.has_value(); }, 60s));
  CHECK(second->end->state == final_state::accepted);
  CHECK(p.effects.started("k") == 1);
  CHECK(p.letters.empty());
}

TEST_CASE("C21: the same key with another payload is a conflict, never a silent acknowledgement") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms, accept("first")}; };
  auto a = p.send("k", "A");
  REQUIRE(p.drive_until([&] { return a->end.has_value(); }, 5s));
  auto b = p.send("k", "B");
  REQUIRE(p.drive_until([&] { return b->end.has_value(); }, 5s));
  CHECK(b->end->state == final_state::dead_lettered);
  CHECK(b->end->why == reason::key_conflict);
  auto again = p.send("k", "A");
  REQUIRE(p.drive_until([&] { return again->end.has_value(); }, 5s));
  CHECK(again->end->state == final_state::accepted);
  CHECK(again->end->result == "first");
  CHECK(p.effects.started("k") == 1);
}

TEST_CASE("a second send of an unsettled key joins it; with another payload it is refused") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{100ms, accept("r")}; };
  auto first = p.send("k", "A");
  auto joined = p.send("k", "A");
  auto conflict = p.send("k", "B");
  REQUIRE(p.drive_until([&] { return first->end && joined->end && conflict->end; }, 5s));
  CHECK(joined->end->state == final_state::accepted);
  CHECK(joined->end->result == "r");
  CHECK(conflict->end->state == final_state::pending);
  CHECK(conflict->end->why == reason::key_conflict);
  CHECK(p.effects.started("k") == 1);
  CHECK(p.sender->core.counters().sent == 1);
}

TEST_CASE("C22: keys are bytes: NUL, case, trailing blanks and look-alike numbers stay distinct") {
  pair p;
  const std::vector<std::string> keys{std::string(1, '\0'),
                                      std::string("a\0b", 3),
                                      std::string("a\0c", 3),
                                      "a",
                                      "A",
                                      "a ",
                                      "1",
                                      "01",
                                      "1.0",
                                      "\xc3\xa9",
                                      "e\xcc\x81",
                                      std::string(255, '\xff')};
  for (const auto& k : keys) {
    p.send(k);
  }
  p.send("");  // a client library would refuse these; a foreign sender may not
  p.send(std::string(256, 'x'));
  p.send(std::string(4096, 'x'));
  auto healthy = p.send("healthy");
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10s));
  for (const auto& k : keys) {
    CHECK(p.effects.effect(k) == 1);
  }
  CHECK(healthy->end->state == final_state::accepted);
  std::map<reason, int> why;
  for (const auto& [id, letter] : p.letters) {
    ++why[letter.why];
  }
  CHECK(why[reason::missing_key] == 1);
  CHECK(why[reason::key_too_long] == 2);
}

TEST_CASE("C23: an unconfirmed record is never evicted; when nothing is confirmed, work stops instead") {
  pair::options o;
  o.consumer.inbox_max = 100;
  pair p(o);
  p.net.fate_of = [&](const core::frame& f, bool) {
    // Nothing confirms: neither the answers nor the lowest number held.
    return p.net.now < time_point(100h) + 10s &&
                   (std::holds_alternative<core::settled>(f) || std::holds_alternative<core::settle>(f))
               ? fate::drop
               : fate::pass;
  };
  for (int i = 0; i < 1'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(9s);
  CHECK(p.effects.starts.size() <= 100);
  CHECK(p.consumers[0]->core.records().size() <= 100);
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  for (int i = 0; i < 1'000; ++i) {
    REQUIRE(p.effects.effect("k" + std::to_string(i)) == 1);
  }
}

TEST_CASE("confirmed records make room, oldest first, and new operations flow through a small inbox") {
  pair::options o;
  o.consumer.inbox_max = 70;
  pair p(o);
  for (int i = 0; i < 5'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  CHECK(p.consumers[0]->core.records().size() <= 70);
  CHECK(p.effects.starts.size() == 5'000);
}

TEST_CASE("an accept whose session was cut is repeated to the sender's next session by message id") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{20ms, accept("done")}; };
  bool deaf = true;
  p.net.fate_of = [&](const core::frame& f, bool) {
    return deaf && std::holds_alternative<core::settle>(f) ? fate::drop : fate::pass;
  };
  auto sent = p.send("k");
  p.drive(100ms);
  p.net.reconnect = 5s;
  p.net.cut_all();
  deaf = false;
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
  CHECK(sent->end->result == "done");
  CHECK(p.effects.started("k") == 1);
  p.drive(3s);
  CHECK(p.consumers[0]->core.records().pinned() == 0);
}
