// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Retry-After, ages, deadlines and timeouts on the virtual clock: cases C13, C15, C53.
#include "support/catch.hpp"
#include "support/pair.hpp"

#include <limits>

using namespace onay;
using namespace onay::test;

TEST_CASE("C13: odd Retry-After values start the next attempt when they should") {
  struct odd {
    std::optional<duration> retry_after;
    duration earliest, latest;
  };
  const odd values[] = {
      {duration(0), 0ms, 300ms},
      {duration(3s), 3s, 3'400ms},
      {duration(-1s), 0ms, 110ms},  // ignored: own backoff, at most the base
      {retry_after_seconds(std::numeric_limits<double>::quiet_NaN()), 0ms, 110ms},
      {retry_after_seconds(9223372037.0), 10s, 10'500ms},  // cut to the cap
      {duration(std::numeric_limits<std::int64_t>::max()), 10s, 10'500ms},
  };
  for (const auto& v : values) {
    pair::options o;
    o.consumer.retry.retry_after_cap = 10s;
    pair p(o);
    p.handler = [&](const core::held& d) {
      return run_plan{1ms, d.attempt == 1 ? failure(error_class::overload, "busy", v.retry_after) : accept()};
    };
    auto sent = p.send("k");
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 30s));
    REQUIRE(p.effects.starts.size() == 2);
    const auto gap = p.effects.starts[1].at - p.effects.starts[0].at;
    CHECK(gap >= v.earliest);
    CHECK(gap <= v.latest);
  }
}

TEST_CASE("C15: a handler that ignores its timeout keeps its key, and others go on") {
  pair::options o;
  o.consumer.concurrency = 2;
  o.consumer.attempt_timeout = 500ms;
  pair p(o);
  p.handler = [](const core::held& d) {
    run_plan plan{d.key == "slow" ? duration(2s) : duration(1ms)};
    plan.obeys_stop = false;
    return plan;
  };
  auto slow = p.send("slow");
  p.drive(600ms);
  CHECK(p.consumers[0]->core.look().stuck == 1);
  CHECK(p.consumers[0]->stops_seen == 1);
  auto other = p.send("other");
  REQUIRE(p.drive_until([&] { return other->end.has_value(); }, 500ms));
  REQUIRE(p.drive_until([&] { return slow->end.has_value(); }, 5s));
  CHECK(p.effects.overlap_max == 1);
  CHECK(p.effects.started("slow") == 1);
  CHECK(p.effects.effect("slow") == 1);
  CHECK(p.consumers[0]->core.look().stuck == 0);
}

TEST_CASE("a handler that obeys its timeout is tried again, as uncertain") {
  pair::options o;
  o.consumer.attempt_timeout = 500ms;
  pair p(o);
  p.handler = [](const core::held& d) { return run_plan{d.attempt == 1 ? duration(10s) : duration(1ms)}; };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(p.effects.attempts("k") == std::vector<std::uint32_t>{1, 2});
  CHECK(p.consumers[0]->core.counters().by_error_class[std::size_t(error_class::uncertain)] == 1);
}

TEST_CASE("what a handler calls passing is uncertain once its timeout has cut it short; what says more is believed") {
  struct {
    error_class returned, counted;
    bool idempotent;
    reason why;
  } const cases[] = {
      {error_class::transient, error_class::uncertain, true, reason::none},
      {error_class::overload, error_class::uncertain, true, reason::none},
      {error_class::rolled_back, error_class::rolled_back, true, reason::none},
      {error_class::permanent, error_class::permanent, true, reason::rejected},
      {error_class::transient, error_class::uncertain, false, reason::outcome_unknown},
      {error_class::rolled_back, error_class::rolled_back, false, reason::none},
  };
  for (const auto& c : cases) {
    pair::options o;
    o.consumer.attempt_timeout = 500ms;
    o.consumer.retry.handler_is_idempotent = c.idempotent;
    pair p(o);
    p.handler = [&](const core::held& d) {
      run_plan plan{d.attempt == 1 ? duration(600ms) : duration(1ms)};
      if (d.attempt == 1) {
        plan.result = failure(c.returned, "cut short");
      }
      plan.obeys_stop = false;
      return plan;
    };
    auto sent = p.send("k");
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 10s));
    CHECK(sent->end->why == c.why);
    CHECK(p.consumers[0]->core.counters().by_error_class[std::size_t(c.counted)] == 1);
  }
}

TEST_CASE("when every slot is stuck the queue goes back and credit stops, until one ends") {
  pair::options o;
  o.consumer.concurrency = 1;
  o.consumer.attempt_timeout = 200ms;
  pair p(o);
  p.handler = [](const core::held& d) {
    run_plan plan{d.key == "stuck" ? duration(20s) : duration(1ms)};
    plan.obeys_stop = false;
    return plan;
  };
  p.send("stuck");
  p.drive(50ms);
  for (int i = 0; i < 20; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(2s);
  CHECK(p.consumers[0]->core.look().held == 1);
  const auto before = p.sender->core.counters().redeliveries;
  p.drive(5s);
  CHECK(p.sender->core.counters().redeliveries == before);  // no hot loop
  // Somebody else takes them meanwhile.
  auto other = o.consumer;
  other.logical_id = "c2";
  p.add_consumer(other);
  REQUIRE(p.drive_until([&] { return p.pending() == 1; }, 5s));
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 30s));
  CHECK(p.effects.starts.size() == 21);
}

TEST_CASE("an abandoned handler's message is settled as an uncertain retry although it runs on") {
  pair::options o;
  o.consumer.attempt_timeout = 200ms;
  o.consumer.abandon_after = duration(300ms);
  pair p(o);
  p.handler = [](const core::held& d) {
    run_plan plan{d.attempt == 1 ? duration(5s) : duration(1ms)};
    plan.obeys_stop = false;
    return plan;
  };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 2s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(p.effects.overlap_max == 2);  // as the option warns
  p.drive(10s);
  CHECK(p.pending() == 0);
  CHECK(p.consumers[0]->core.look().running == 0);
}

TEST_CASE("C53: ages on the wire decide, clocks don't: what is too old is condemned without a start") {
  pair::options o;
  o.sender.age_max = 10s;
  o.consumer.retry.attempts_max = 1000;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1ms, failure(error_class::transient, "always")}; };
  p.consumers[0]->core.pause();
  auto waits = p.send("waits");
  p.drive(9s);
  CHECK(p.effects.starts.empty());
  p.consumers[0]->core.resume();
  REQUIRE(p.drive_until([&] { return waits->end.has_value(); }, 3s));
  CHECK(waits->end->why == reason::too_old);
  CHECK(p.effects.started("waits") >= 1);
  for (const auto& s : p.effects.starts) {
    CHECK(s.age < 10s);
    CHECK(s.time_left > 0s);
  }
  // Eleven seconds in the sender's hands before anybody came.
  p.kill(0);
  auto old = p.send("old");
  p.drive(11s);
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return old->end.has_value(); }, 5s));
  CHECK(old->end->why == reason::too_old);
  CHECK(p.effects.started("old") == 0);
}

TEST_CASE("a message's own deadline shortens its limit and reaches the handler") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms, failure(error_class::transient, "always")}; };
  auto sent = p.send("k", "payload", 500ms);
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
  CHECK(p.effects.starts.front().time_left <= 500ms);
  CHECK(p.net.now - p.effects.starts.front().at < 1s);
}
