// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Leases, acknowledgements, retries in time: cases C01, C02, C03, C52, C53.
#include "support/catch.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

namespace {

bool near(duration value, duration expected, duration tolerance) {
  return value >= expected - tolerance && value <= expected + tolerance;
}

}  // namespace

TEST_CASE("C01: a delivery that waits in the local queue keeps its lease") {
  pair::options o;
  o.consumer.concurrency = 1;
  o.consumer.credit_max = 10;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1s}; };
  for (int i = 0; i < 5; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 6s));
  for (int i = 0; i < 5; ++i) {
    CHECK(p.effects.started("k" + std::to_string(i)) == 1);
  }
  CHECK(p.sender->core.counters().redeliveries == 0);
  CHECK(p.sender->core.counters().resent_copies == 0);
}

TEST_CASE("a handler longer than the lease keeps its message and starts once") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{5s}; };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 10s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(p.effects.started("k") == 1);
}

TEST_CASE("C02: an accept for a session that is gone settles a message that nobody else has settled, and only that") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  o.consumer.concurrency = 1;
  pair p(o);
  bool first = true;
  p.handler = [&](const core::held&) {
    run_plan plan{first ? duration(3s) : duration(200ms)};
    plan.obeys_stop = false;
    first = false;
    return plan;
  };
  auto m1 = p.send("m1");
  p.drive(150ms);
  REQUIRE(p.effects.started("m1") == 1);
  // What c1 says is lost until 3.2 s; its lease ends meanwhile.
  const auto silent_until = p.net.now + 3'200ms;
  p.net.fate_of = [&](const core::frame& f, bool from_dialer) {
    return from_dialer && p.net.now < silent_until && !std::holds_alternative<core::hello>(f) ? fate::drop : fate::pass;
  };
  p.drive(1'200ms);
  CHECK(p.consumers[0]->stops_seen == 1);  // the handler was told that its lease is over
  REQUIRE(p.drive_until([&] { return m1->end.has_value(); }, 10s));
  CHECK(m1->end->state == final_state::accepted);
  CHECK(m1->ends == 1);
  CHECK(p.effects.started("m1") == 1);  // the redelivery waited for the run of its key, or was answered from the inbox
  auto m2 = p.send("m2");
  REQUIRE(p.drive_until([&] { return m2->end.has_value(); }, 5s));
  CHECK(p.effects.effect("m2") == 1);
  p.drive(5s);
  CHECK(p.pending() == 0);
}

TEST_CASE("a late retry or reject changes nothing") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  pair p(o);
  int runs = 0;
  p.handler = [&](const core::held&) {
    ++runs;
    run_plan plan{runs == 1 ? duration(3s) : duration(100ms),
                  runs == 1 ? failure(error_class::permanent, "late") : accept()};
    plan.obeys_stop = false;
    return plan;
  };
  auto sent = p.send("k");
  p.drive(100ms);
  p.net.fate_of = [&](const core::frame& f, bool from_dialer) {
    return from_dialer && p.net.now < time_point(100h) + 2s && !std::holds_alternative<core::hello>(f) ? fate::drop
                                                                                                       : fate::pass;
  };
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(p.letters.empty());
}

TEST_CASE("C03: a retry delay longer than the lease is kept, and nothing starts in between") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  pair p(o);
  p.handler = [](const core::held& d) {
    return run_plan{1ms, d.attempt == 1 ? failure(error_class::overload, "busy", 5s) : accept()};
  };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 10s));
  REQUIRE(p.effects.starts.size() == 2);
  CHECK(p.effects.attempts("k") == std::vector<std::uint32_t>{1, 2});
  CHECK(near(p.effects.starts[1].at - p.effects.starts[0].at, 5s + 100ms, 300ms));
  CHECK(p.effects.effect("k") == 1);
}

TEST_CASE("C52: steps of the wall clock change nothing") {
  for (auto step : {-1h, 1h}) {
    pair p;
    p.handler = [](const core::held& d) {
      return run_plan{d.attempt == 1 ? duration(1s) : duration(3s),
                      d.attempt == 1 ? failure(error_class::transient, "x", 2s) : accept()};
    };
    auto sent = p.send("k");
    p.drive(1'500ms);
    p.net.utc += step;
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 30s));
    CHECK(sent->end->state == final_state::accepted);
    REQUIRE(p.effects.starts.size() == 2);
    CHECK(near(p.effects.starts[1].at - p.effects.starts[0].at, 3s + 100ms, 200ms));
    CHECK(p.sender->core.counters().peers_lost == 0);
    CHECK(p.sender->core.counters().redeliveries == 1);
  }
}

TEST_CASE(
    "a machine that was suspended doesn't hold its own absence against its peers, and starts nothing on an old lease") {
  pair::options o;
  o.consumer.concurrency = 1;
  o.sender.age_max = o.consumer.age_max = 10min;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{100ms}; };
  for (int i = 0; i < 20; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(250ms);
  p.net.now += 1min;  // nobody ran: both ends were suspended
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 2min));
  for (int i = 0; i < 20; ++i) {
    CHECK(p.effects.effect("k" + std::to_string(i)) == 1);
  }
  CHECK(p.letters.empty());
}
