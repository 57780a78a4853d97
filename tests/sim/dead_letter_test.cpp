// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Condemning and burying: case C09 and the two steps of a rejection.
#include "support/catch.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

namespace {

run_plan permanent() { return {1ms, failure(error_class::permanent, "bad order")}; }

}  // namespace

TEST_CASE("a rejected message reaches the collector with its bytes, its reason and its record, and then ends") {
  pair p;
  p.handler = [](const core::held&) { return permanent(); };
  auto sent = p.send("k", std::string("pay\0load", 8));
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
  CHECK(sent->end->state == final_state::dead_lettered);
  CHECK(sent->end->why == reason::rejected);
  REQUIRE(p.letters.size() == 1);
  const auto& letter = p.letters.begin()->second;
  CHECK(letter.payload == std::string("pay\0load", 8));
  CHECK(letter.why == reason::rejected);
  CHECK(letter.origin == "c1");
  CHECK(letter.record.operation_key == "k");
  CHECK(letter.record.attempts == 1);
  CHECK(letter.record.first_attempt.has_value());
  CHECK(letter.record.last_error == error_class::permanent);
  CHECK(letter.record.last_error_text == "bad order");
  CHECK(letter.record.deadline.has_value());
  CHECK(letter.record.state == final_state::condemned);
}

TEST_CASE("C09: while the collector is down the condemned wait, nobody runs them again, and healthy ones flow on") {
  for (bool kill_consumer : {false, true}) {
    pair p;
    p.kill_collector();
    p.handler = [](const core::held& d) { return d.key == "bad" ? permanent() : run_plan{1ms}; };
    auto bad = p.send("bad");
    for (int i = 0; i < 100; ++i) {
      p.send("k" + std::to_string(i));
    }
    p.drive(5s);
    if (kill_consumer) {
      p.kill(0);
      p.add_consumer();
    }
    p.drive(5s);
    CHECK(p.pending() == 1);
    CHECK(!bad->end);
    CHECK(p.effects.started("bad") == 1);
    CHECK(p.sender->core.messages().condemned() == 1);
    for (int i = 0; i < 100; ++i) {
      CHECK(p.effects.effect("k" + std::to_string(i)) == 1);
    }
    // Tries are spaced: each is one redelivery of the condemned message.
    CHECK(p.sender->core.counters().redeliveries <= 20);
    p.start_collector();
    REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 2s));
    CHECK(p.letters.size() == 1);
    CHECK(bad->end->state == final_state::dead_lettered);
  }
}

TEST_CASE("a consumer that dies while it buries leaves one letter, whoever buries next") {
  pair p;
  p.handler = [](const core::held&) { return permanent(); };
  // The collector's confirmations don't reach c1.
  bool confirm = false;
  p.net.fate_of = [&](const core::frame& f, bool from_dialer) {
    const auto* s = std::get_if<core::settle>(&f);
    return s != nullptr && !from_dialer && !confirm ? fate::drop : fate::pass;
  };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return p.letters.size() == 1; }, 5s));
  p.kill(0);
  confirm = true;
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
  CHECK(sent->end->state == final_state::dead_lettered);
  CHECK(p.letters.size() == 1);
  CHECK(p.effects.started("k") == 1);
}

TEST_CASE("every settlement frame of a rejection may be lost once") {
  for (int lost = 0; lost < 12; ++lost) {
    pair p;
    p.handler = [](const core::held&) { return permanent(); };
    int seen = 0;
    p.net.fate_of = [&](const core::frame& f, bool) {
      const bool settles = std::holds_alternative<core::settle>(f) || std::holds_alternative<core::settled>(f) ||
                           std::holds_alternative<core::deliver>(f);
      return settles && seen++ == lost ? fate::drop : fate::pass;
    };
    auto sent = p.send("k");
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
    CHECK(sent->end->state == final_state::dead_lettered);
    CHECK(p.effects.started("k") == 1);
    CHECK(p.letters.size() == 1);
  }
}

TEST_CASE("a completed key is accepted even when its message comes back past its limits") {
  pair::options o;
  o.sender.age_max = 3s;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{20ms}; };
  // The accept is lost until the message is too old.
  p.net.fate_of = [&](const core::frame& f, bool) {
    return p.net.now < time_point(100h) + 4s &&
                   (std::holds_alternative<core::settle>(f) || std::holds_alternative<core::bye>(f))
               ? fate::drop
               : fate::pass;
  };
  auto sent = p.send("k");
  p.drive(500ms);
  p.net.cut_all();
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(p.effects.started("k") == 1);
  CHECK(p.letters.empty());
}

TEST_CASE("with discard spelled out a condemned message is buried at once") {
  pair::options o;
  o.consumer.bury = core::burial::discard;
  o.collector = false;
  pair p(o);
  p.handler = [](const core::held&) { return permanent(); };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
  CHECK(sent->end->state == final_state::dead_lettered);
}

TEST_CASE("a collector with little credit takes a thousand letters in turn") {
  pair p;
  p.kill_collector();
  p.collector_credit = 8;
  p.start_collector();
  p.handler = [](const core::held&) { return permanent(); };
  for (int i = 0; i < 1'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10min));
  CHECK(p.letters.size() == 1'000);
  CHECK(p.effects.starts.size() == 1'000);
}

// --- a sender's own dead letters ---

TEST_CASE("with nobody there, messages past their limit are counted as overdue, whatever waits before them") {
  pair p;
  p.kill(0);
  p.send("long");
  p.send("a", "payload", 100ms);
  p.send("b", "payload", 1500ms);
  p.drive(90ms);
  CHECK(p.sender->core.overdue() == 0);
  p.drive(1s);
  CHECK(p.sender->core.overdue() == 1);
  p.drive(1s);
  CHECK(p.sender->core.overdue() == 2);
  CHECK(p.sender->core.burials.empty());  // it has no endpoint of its own
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 5s));
  CHECK(p.effects.started("a") + p.effects.started("b") == 0);
  CHECK(p.effects.effect("long") == 1);
  CHECK(p.letters.size() == 2);
}

TEST_CASE("a sender buries by itself only what no consumer can, in order, and as much as its collector has room for") {
  pair::options o;
  o.sender.buries_itself = true;
  pair p(o);
  auto& core = p.sender->core;
  p.drive(1s);
  p.handler = [](const core::held&) { return run_plan{30s}; };
  auto late = p.send("late", "payload", 1s);  // a consumer is there, and buries it
  REQUIRE(p.drive_until([&] { return p.effects.started("late") == 1; }, 1s));
  p.drive(1s);
  CHECK(core.burials.empty());
  p.kill(0);
  p.drive(5s);  // its lease
  p.send("x", "payload", 100ms);
  p.send("y", "payload", 100ms);
  p.drive(2s);
  CHECK(core.overdue() == 3);
  CHECK(core.burials.empty());  // no room yet
  CHECK(core.burial_wish() > 0);
  core.set_burial_room(2, 1U << 20U);
  p.sender->turn();
  REQUIRE(core.burials.size() == 2);
  CHECK(core.burials[0].message->key() == "late");
  CHECK(core.burials[0].why == reason::too_old);
  CHECK(core.burials[0].record.attempts == 1);  // the consumer died in it
  CHECK(core.burials[1].message->key() == "x");
  const auto first = core.burials[0].id.number;
  core.burials.clear();
  p.add_consumer();  // what is on its way isn't handed over any more
  REQUIRE(p.drive_until([&] { return p.letters.size() == 1; }, 5s));
  CHECK(p.letters.begin()->second.record.operation_key == "y");
  core.handle_buried(p.net.instant(), first);
  p.drive(1s);
  REQUIRE(late->end);
  CHECK(late->end->state == final_state::dead_lettered);
  CHECK(p.pending() == 1);
}
