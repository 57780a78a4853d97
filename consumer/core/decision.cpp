// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/decision.hpp"

#include <algorithm>

namespace onay::core {

namespace {

decision rejected_for(reason why) { return {settlement::reject, duration::zero(), why}; }

// What the error class alone forbids; `none` if it may be tried again.
reason forbidden_by(error_class cls, bool handler_is_idempotent) {
  switch (cls) {
    case error_class::transient:
    case error_class::overload:
    case error_class::rolled_back:
      return reason::none;
    case error_class::uncertain:
      return handler_is_idempotent ? reason::none : reason::outcome_unknown;
    case error_class::unauthorized:
      return reason::unauthorized;
    case error_class::none:
    case error_class::permanent:
      break;
  }
  return reason::rejected;  // also what nothing classified: only what is known to pass is tried again
}

// A negative Retry-After was a mistake of whoever sent it, and is ignored.
duration delay_after(const failed_attempt& failed, const retry_policy& policy, double draw) {
  if (!failed.retry_after || *failed.retry_after < duration::zero()) {
    return backoff_delay(policy.backoff, failed.attempt, draw);
  }
  const duration floor =
      policy.retry_after_cap ? std::min(*failed.retry_after, *policy.retry_after_cap) : *failed.retry_after;
  return delay_with_retry_after(policy.backoff, floor, draw);
}

}  // namespace

decision decide(const failed_attempt& failed, const retry_policy& policy, double draw) {
  if (const reason why = forbidden_by(failed.cls, policy.handler_is_idempotent); why != reason::none) {
    return rejected_for(why);
  }
  // Before any delay: nobody waits for an attempt that isn't allowed.
  if (policy.attempts_max && failed.attempt >= *policy.attempts_max) {
    return rejected_for(reason::attempts_exhausted);
  }
  const duration delay = delay_after(failed, policy, draw);
  // Now and not at the limit, so that the dead letter carries the real last error and nothing waits in vain.
  if (failed.time_left && delay >= *failed.time_left) {
    return rejected_for(reason::too_old);
  }
  return {settlement::retry, delay, reason::none};
}

}  // namespace onay::core
