// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors

#include "shell/why_idle.hpp"
#include "support/catch.hpp"

namespace onay::shell {

TEST_CASE("why_idle tells the first reason that holds", "[why_idle]") {
  idle_facts f;
  f.concurrency = 2;
  f.sessions = 1;
  CHECK(why_idle(f) == idle_reason::no_messages);
  f.asking = 1;
  CHECK(why_idle(f) == idle_reason::awaiting_start);
  f.inbox_free = 0;
  CHECK(why_idle(f) == idle_reason::inbox_full);
  f.running = f.stuck = 2;
  f.queued = 5;
  CHECK(why_idle(f) == idle_reason::stuck_handlers);
  f.sessions = 0;
  CHECK(why_idle(f) == idle_reason::not_connected);
  f.paused = true;
  CHECK(why_idle(f) == idle_reason::paused);
  f.draining = true;
  CHECK(why_idle(f) == idle_reason::draining);
  f.stopped = true;
  CHECK(why_idle(f) == idle_reason::stopped);
  f.stuck = 1;
  CHECK(why_idle(f) == idle_reason::busy);
}

TEST_CASE("a consumer with work for a free slot isn't idle, unless it may not start any", "[why_idle]") {
  idle_facts f;
  f.sessions = 1;
  f.queued = 1;
  CHECK(why_idle(f) == idle_reason::busy);
  f.paused = true;
  CHECK(why_idle(f) == idle_reason::paused);
}

TEST_CASE("every reason has a name", "[why_idle]") {
  for (int r = int(idle_reason::busy); r <= int(idle_reason::no_messages); ++r) {
    CHECK(to_string(idle_reason(r)) != "?");
  }
  CHECK(to_string(idle_reason(99)) == "?");
}

}  // namespace onay::shell
