// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "support/catch.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

TEST_CASE("a message is accepted after its handler returned, with the handler's result") {
  for (bool consumer_binds : {false, true}) {
    pair::options o;
    o.consumer_binds = consumer_binds;
    pair p(o);
    p.handler = [](const core::held&) { return run_plan{20ms, accept("forty-two")}; };
    auto sent = p.send("k");
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
    CHECK(sent->end->state == final_state::accepted);
    CHECK(sent->end->result == "forty-two");
    CHECK(p.effects.effect("k") == 1);
    p.drive(5s);
    CHECK(p.pending() == 0);
    CHECK(sent->ends == 1);
  }
}

TEST_CASE("ten thousand messages are accepted once each") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  for (int i = 0; i < 10'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(p.effects.effect("k" + std::to_string(i)) == 1);
  }
  CHECK(p.sender->core.counters().first_attempt_successes == 10'000);
  CHECK(p.effects.running_max == 4);
  CHECK(p.consumers[0]->held_max <= 64);
}
