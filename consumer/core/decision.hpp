// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What follows a failed attempt: one pure function of the error class, the counters, the policy and the time left.
#pragma once

#include "core/backoff.hpp"
#include "core/frames.hpp"

#include <onay/outcome.hpp>
#include <onay/time.hpp>

#include <cstdint>
#include <optional>

namespace onay::core {

struct retry_policy {
  std::optional<std::uint32_t> attempts_max;  // nothing: no limit
  backoff_policy backoff;
  std::optional<duration> retry_after_cap;
  bool handler_is_idempotent = true;
};

struct failed_attempt {
  error_class cls = error_class::permanent;
  std::uint32_t attempt = 1;            // of this start
  std::optional<duration> retry_after;  // as the handler said
  std::optional<duration> time_left;    // of the message; nothing: no limit
};

struct decision {
  settlement kind = settlement::reject;  // retry or reject
  duration delay{};                      // retry: before the next attempt
  reason why = reason::none;             // reject
};

// `draw` is uniform in [0, 1), from the injected generator; one draw per decision.
[[nodiscard]] decision decide(const failed_attempt& failed, const retry_policy& policy, double draw);

}  // namespace onay::core
