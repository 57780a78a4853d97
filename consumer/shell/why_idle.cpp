// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/why_idle.hpp"

namespace onay {

namespace shell {

idle_reason why_idle(const idle_facts& f) {
  const bool may_start = !f.stopped && !f.draining && !f.paused;
  if (f.running > f.stuck || (may_start && f.queued > 0 && f.running < f.concurrency)) {
    return idle_reason::busy;
  }
  if (f.stopped) {
    return idle_reason::stopped;
  }
  if (f.draining) {
    return idle_reason::draining;
  }
  if (f.paused) {
    return idle_reason::paused;
  }
  if (f.sessions == 0) {
    return idle_reason::not_connected;
  }
  if (f.stuck > 0 && f.stuck >= f.concurrency) {
    return idle_reason::stuck_handlers;
  }
  if (f.inbox_free == 0) {
    return idle_reason::inbox_full;
  }
  return f.asking > 0 ? idle_reason::awaiting_start : idle_reason::no_messages;
}

}  // namespace shell

std::string_view to_string(idle_reason r) noexcept {
  switch (r) {
    case idle_reason::busy:
      return "busy";
    case idle_reason::stopped:
      return "stopped";
    case idle_reason::draining:
      return "draining";
    case idle_reason::paused:
      return "paused";
    case idle_reason::not_connected:
      return "not_connected";
    case idle_reason::stuck_handlers:
      return "stuck_handlers";
    case idle_reason::inbox_full:
      return "inbox_full";
    case idle_reason::awaiting_start:
      return "awaiting_start";
    case idle_reason::no_messages:
      return "no_messages";
  }
  return "?";
}

}  // namespace onay
