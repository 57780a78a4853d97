// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Attempts, crashes, poison: cases C04, C05, C06, C07, C14, C40.
#include "support/catch.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

TEST_CASE("C04: a message that kills every worker is dead-lettered, and its neighbours live") {
  // Whether the first start could be announced before it killed decides between three deaths and four.
  for (auto lives_for : {duration(0), duration(50ms)}) {
    pair::options o;
    o.consumer.concurrency = 1;
    pair p(o);
    auto poisoned = std::make_shared<std::map<core::held*, bool>>();
    p.handler = [&](const core::held& d) {
      run_plan plan{1ms};
      if (d.key == "poison") {
        plan.kills = lives_for == duration(0);
        plan.takes = 1h;
        plan.obeys_stop = false;
      }
      return plan;
    };
    auto poison = p.send("poison");
    std::vector<std::shared_ptr<sent_message>> healthy;
    for (int i = 0; i < 5; ++i) {
      healthy.push_back(p.send("k" + std::to_string(i)));
    }
    if (lives_for > duration(0)) {
      // The process dies 50 ms into each run, when the start has been announced.
      for (int death = 0; death < 3; ++death) {
        const auto before = p.effects.started("poison");
        REQUIRE(p.drive_until([&] { return p.effects.started("poison") > before; }, 30s));
        p.drive(lives_for);
        const auto config = p.consumers[0]->core.config();
        p.kill(0);
        p.add_consumer(config);
        ++p.deaths;
      }
    }
    REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
    CHECK(p.deaths == (lives_for > duration(0) ? 3 : 4));
    REQUIRE(poison->end);
    CHECK(poison->end->state == final_state::dead_lettered);
    CHECK(poison->end->why == reason::attempts_exhausted);
    CHECK(poison->end->record->attempts == 3);
    CHECK(poison->end->record->last_error == error_class::uncertain);
    REQUIRE(p.letters.size() == 1);
    CHECK(p.letters.begin()->second.record.operation_key == "poison");
    CHECK(p.letters.begin()->second.record.attempts == 3);
    for (const auto& h : healthy) {
      CHECK(h->end->state == final_state::accepted);
      CHECK(p.effects.effect(h->key) == 1);
    }
    const auto deaths = p.deaths;
    p.drive(30s);
    CHECK(p.deaths == deaths);
  }
}

TEST_CASE("C04: with several workers and much traffic, poison costs no innocent message") {
  pair::options o;
  o.consumer.concurrency = 4;
  pair p(o);
  auto second = o.consumer, third = o.consumer;
  second.logical_id = "c2";
  third.logical_id = "c3";
  p.add_consumer(second);
  p.add_consumer(third);
  p.handler = [](const core::held& d) {
    run_plan plan{2ms};
    plan.kills = d.key == "k500" || d.key == "k501";
    return plan;
  };
  for (int i = 0; i < 2'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 5min));
  CHECK(p.letters.size() == 2);
  CHECK(p.sender->core.counters().accepted == 1'998);
  for (const auto& [id, letter] : p.letters) {
    CHECK((letter.record.operation_key == "k500" || letter.record.operation_key == "k501"));
    CHECK(letter.record.attempts == 3);
  }
  CHECK(p.deaths <= 8);  // three each and one unannounced; both may die in one death
}

TEST_CASE("C05: attempts are counted by the sender and survive the worker") {
  pair::options o;
  o.consumer.retry.attempts_max = 4;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{20ms, failure(error_class::transient, "always")}; };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return p.effects.started("k") == 2 && p.consumers[0]->runs.empty(); }, 20s));
  p.drive(10ms);
  p.kill(0);
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 60s));
  CHECK(p.effects.attempts("k") == std::vector<std::uint32_t>{1, 2, 3, 4});
  CHECK(sent->end->state == final_state::dead_lettered);
  CHECK(sent->end->record->attempts == 4);
  CHECK(p.letters.size() == 1);
}

TEST_CASE("C06: what is handed back unstarted loses no attempt") {
  pair::options o;
  o.consumer.concurrency = 1;
  o.consumer.credit_max = 10;
  o.consumer.retry.attempts_max = 1;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1s}; };
  for (int i = 0; i < 10; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(200ms);
  p.consumers[0]->core.begin_drain(p.net.instant(), p.net.now + 2s);
  REQUIRE(p.drive_until([&] { return p.consumers[0]->core.drain_done(); }, 3s));
  CHECK(p.consumers[0]->core.report().running == 0);
  CHECK(p.effects.starts.size() == 1);
  CHECK(p.effects.effect("k0") == 1);
  p.kill(0);
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 30s));
  for (int i = 0; i < 10; ++i) {
    CHECK(p.effects.attempts("k" + std::to_string(i)) == std::vector<std::uint32_t>{1});
    CHECK(p.effects.effect("k" + std::to_string(i)) == 1);
  }
  CHECK(p.letters.empty());
}

TEST_CASE("C07: the attempt limit counts starts, and a retry on the last one is a dead letter now") {
  for (std::uint32_t limit : {1U, 2U, 3U}) {
    for (bool with_delay : {false, true}) {
      pair::options o;
      o.consumer.retry.attempts_max = limit;
      pair p(o);
      p.handler = [=](const core::held& d) {
        const bool last = d.attempt == limit;
        return run_plan{1ms, failure(error_class::transient, "no",
                                     last && with_delay ? std::optional<duration>(10s) : std::nullopt)};
      };
      auto sent = p.send("k");
      REQUIRE(p.drive_until([&] { return p.effects.started("k") == int(limit); }, 20s));
      const auto last_start = p.net.now;
      REQUIRE(p.drive_until([&] { return p.letters.size() == 1; }, 20s));
      CHECK(p.net.now - last_start < 1s);
      p.drive(5s);
      CHECK(p.effects.started("k") == int(limit));
      CHECK(sent->end->why == reason::attempts_exhausted);
      CHECK(p.letters.begin()->second.record.attempts == limit);
      CHECK(p.letters.begin()->second.record.last_error_text == "no");
      CHECK(p.pending() == 0);
    }
  }
}

TEST_CASE("C14: a retry that can't start before the limit is a dead letter now, with the real error") {
  pair::options o;
  o.sender.age_max = 10s;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1ms, failure(error_class::overload, "quota", 30s)}; };
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return p.letters.size() == 1; }, 1s));
  const auto& letter = p.letters.begin()->second;
  CHECK(letter.why == reason::too_old);
  CHECK(letter.record.last_error_text == "quota");
  CHECK(letter.record.last_error == error_class::overload);
  CHECK(p.effects.started("k") == 1);
}

TEST_CASE("C40: killing a worker every 500 ms loses nothing and dead-letters nobody") {
  pair::options o;
  o.consumer.concurrency = 2;
  o.consumer.credit_max = 256;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  for (int i = 0; i < 5'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  for (int kill = 0; kill < 20 && p.pending() > 0; ++kill) {
    p.drive_until([&] { return p.pending() == 0; }, 500ms);
    p.kill(0);
    p.add_consumer();
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  CHECK(p.letters.empty());
  for (int i = 0; i < 5'000; ++i) {
    REQUIRE(p.effects.effect("k" + std::to_string(i)) >= 1);
  }
}

TEST_CASE("a dropped start confirmation or question only costs a round trip") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  for (int i = 0; i < 50; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(1ms);
  p.kill(0);
  p.add_consumer();  // everything that the first one held is a suspect now
  int dropped = 0;
  p.net.fate_of = [&](const core::frame& f, bool) {
    const bool candidate = std::holds_alternative<core::settle>(f) || std::holds_alternative<core::settled>(f);
    return candidate && ++dropped % 3 == 0 ? fate::drop : fate::pass;
  };
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 30s));
  CHECK(dropped > 3);
}

TEST_CASE("a handler that isn't idempotent starts only on the sender's word, and is never repeated after a loss") {
  pair::options o;
  o.consumer.retry.handler_is_idempotent = false;
  pair p(o);
  p.handler = [](const core::held& d) {
    run_plan plan{5ms};
    plan.kills = d.key == "bad";
    return plan;
  };
  auto bad = p.send("bad");
  auto good = p.send("good");
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  CHECK(bad->end->state == final_state::dead_lettered);
  CHECK(bad->end->why == reason::outcome_unknown);
  CHECK(p.effects.started("bad") == 1);
  // Its neighbour may have been confirmed too when the process died; then nobody can say whether it ran.
  CHECK((good->end->state == final_state::accepted || good->end->why == reason::outcome_unknown));
}
