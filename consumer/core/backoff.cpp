// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/backoff.hpp"

#include <algorithm>

namespace onay::core {

namespace {

// random(0, bound). A draw outside of [0, 1), also NaN, counts as the nearest end: a wait is never negative and never
// above its bound, whatever generator was injected.
duration spread(duration bound, double draw) {
  if (!(draw > 0)) {
    return duration::zero();
  }
  if (draw >= 1) {
    return bound;
  }
  // The bound may not be exact as a double, so the product may round to more.
  const double product = static_cast<double>(bound.count()) * draw;
  return product >= static_cast<double>(bound.count()) ? bound : duration(static_cast<duration::rep>(product));
}

}  // namespace

duration backoff_bound(const backoff_policy& policy, std::uint64_t n) {
  const duration base = std::max(policy.base, duration::zero());
  const duration cap = std::max(policy.cap, duration::zero());
  const std::uint64_t doublings = n > 0 ? n - 1 : 0;
  // base * 2^doublings > cap, asked without computing the left side.
  if (doublings >= 63 || base.count() > (cap.count() >> doublings)) {
    return cap;
  }
  return duration(base.count() << doublings);
}

duration backoff_delay(const backoff_policy& policy, std::uint64_t n, double draw) {
  const duration bound = backoff_bound(policy, n);
  return policy.jitter ? spread(bound, draw) : bound;
}

// The jitter's bound is min(first backoff bound, 100 ms) + floor / 40, at most the backoff's cap. With the defaults a
// floor of 0 gives 0..0.1 s, 3 s gives 3..3.175 s, 10 s gives 10..10.35 s: late enough to part clients, early enough to
// keep what was asked for, with the way to the handler on top (0.3 s, 3.4 s and 10.5 s at most). A share of the floor,
// because a longer pause has gathered more clients; a part apart from it, because "0" is told to a crowd too.
duration delay_with_retry_after(const backoff_policy& policy, duration retry_after, double draw) {
  constexpr duration fixed_part_max = std::chrono::milliseconds(100);
  const duration floor = std::max(retry_after, duration::zero());
  if (!policy.jitter) {
    return floor;
  }
  const duration bound =
      std::min(std::min(backoff_bound(policy, 1), fixed_part_max) + floor / 40, std::max(policy.cap, duration::zero()));
  return floor + std::min(spread(bound, draw), duration::max() - floor);
}

}  // namespace onay::core
