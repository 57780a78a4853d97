// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Why no handler is starting: a pure function, so that every answer can be tested.
#pragma once

#include <onay/consumer.hpp>

#include <cstdint>

namespace onay::shell {

struct idle_facts {
  bool stopped = false;
  bool draining = false;
  bool paused = false;
  std::uint64_t sessions = 0;
  std::uint64_t queued = 0;  // could start if there were a slot
  std::uint64_t running = 0;
  std::uint64_t stuck = 0;  // of those, past their timeout
  std::uint64_t concurrency = 1;
  std::uint64_t inbox_free = 1;  // records
  std::uint64_t asking = 0;      // wait for a sender's word
};

[[nodiscard]] idle_reason why_idle(const idle_facts& f);

}  // namespace onay::shell
