// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Leaving: cases C35, C36.
#include "support/catch.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

TEST_CASE("C35: a drain ends clean only when every settlement is confirmed, and the next worker gets nothing twice") {
  pair p;
  for (int i = 0; i < 200; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.effects.starts.size() == 200; }, 10s));
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 2s);
  REQUIRE(p.drive_until([&] { return core.drain_done(); }, 2s));
  CHECK(core.report().unconfirmed == 0);
  CHECK(p.pending() == 0);
  p.kill(0);
  p.add_consumer();
  p.drive(10s);
  CHECK(p.effects.starts.size() == 200);
}

TEST_CASE("C35: settlements that couldn't be confirmed in time are reported") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  p.net.fate_of = [](const core::frame& f, bool) {
    return std::holds_alternative<core::settled>(f) || std::holds_alternative<core::bye_ok>(f) ? fate::drop
                                                                                               : fate::pass;
  };
  for (int i = 0; i < 20; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.effects.effects.size() == 20; }, 10s));
  auto& core = p.consumers[0]->core;
  const auto asked = p.net.now;
  core.begin_drain(p.net.instant(), p.net.now + 100ms);
  p.drive_until([&] { return core.drain_done(); }, 600ms);
  CHECK(p.net.now - asked <= 600ms);
  CHECK(core.report().unconfirmed == 20);
}

TEST_CASE("C36: a drain ends in time although a handler ignores its stop, and says so") {
  pair p;
  p.handler = [](const core::held&) {
    run_plan plan{60s};
    plan.obeys_stop = false;
    return plan;
  };
  auto sent = p.send("k");
  p.drive(100ms);
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 2s);
  CHECK(!p.drive_until([&] { return core.drain_done(); }, 1'900ms));
  REQUIRE(p.drive_until([&] { return core.drain_done(); }, 300ms));
  CHECK(core.report().running == 1);
  CHECK(p.consumers[0]->stops_seen == 1);
  CHECK(!sent->end);  // it wasn't acknowledged
  // Its message stays with the sender until the lease ends, and is charged.
  p.kill(0);
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  auto other = core::consumer_config(pair::options().consumer);
  other.logical_id = "c2";  // under the old name it would take its predecessor's place at once
  p.add_consumer(other);
  p.drive(1s);
  CHECK(!sent->end);
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 10s));
  CHECK(p.effects.attempts("k").back() == 2);
}

TEST_CASE("C36: a drain doesn't wait for a collector that is down") {
  pair p;
  p.kill_collector();
  p.handler = [](const core::held&) { return run_plan{1ms, failure(error_class::permanent, "no")}; };
  for (int i = 0; i < 5; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(1s);
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 2s);
  REQUIRE(p.drive_until([&] { return core.drain_done(); }, 2'200ms));
  CHECK(p.pending() == 5);
  CHECK(p.sender->core.messages().condemned() == 5);
}

TEST_CASE("a handler that runs when a drain begins is finished and acknowledged") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1s}; };
  auto sent = p.send("k");
  p.drive(100ms);
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 2s);
  REQUIRE(p.drive_until([&] { return core.drain_done(); }, 2s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(core.report().running == 0);
}

TEST_CASE("what arrives while a consumer leaves is handed back without a loop between the two ends") {
  pair::options o;
  o.consumer.concurrency = 1;
  o.consumer.credit_max = 32;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1s}; };
  for (int i = 0; i < 1'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(500ms);
  const auto before = p.sender->core.counters().redeliveries;
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 5s);
  REQUIRE(p.drive_until([&] { return core.drain_done(); }, 5s));
  CHECK(p.sender->core.counters().redeliveries == before);
  CHECK(p.effects.starts.size() == 1);
}

TEST_CASE("a consumer that leaves lowers its credit before it hands anything back") {
  pair::options o;
  o.consumer.concurrency = 1;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1s}; };
  p.send("a");
  p.send("b");
  p.drive(100ms);
  std::vector<char> said;
  p.net.fate_of = [&](const core::frame& f, bool from_dialer) {
    if (from_dialer && std::holds_alternative<core::settle>(f)) said.push_back('s');
    if (from_dialer && std::holds_alternative<core::consumer_heartbeat>(f)) said.push_back('h');
    return fate::pass;
  };
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 5s);
  p.drive(10ms);
  REQUIRE(said.size() >= 2);
  CHECK(said[0] == 'h');
  CHECK(said[1] == 's');
}

TEST_CASE("a sender that leaves says good-bye, and its consumers forget it") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1s}; };
  auto sent = p.send("k");
  p.drive(100ms);
  p.sender->core.begin_close(p.net.instant());
  REQUIRE(p.drive_until([&] { return p.sender->core.close_done(); }, 1s));
  p.sender->core.abandon_all(p.net.instant());
  p.sender->turn();
  REQUIRE(sent->end);
  CHECK(sent->end->state == final_state::unknown);
  CHECK(p.consumers[0]->core.look().sessions == 0);
}
