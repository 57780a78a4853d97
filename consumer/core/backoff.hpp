// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Exponential backoff with full jitter, and Retry-After as a floor below it.
#pragma once

#include <onay/time.hpp>

#include <cstdint>
#include <optional>

namespace onay::core {

// 0 < base <= cap; validated with the options.
struct backoff_policy {
  duration base = std::chrono::milliseconds(100);
  duration cap = std::chrono::seconds(30);
  bool jitter = true;
};

// min(cap, base * 2^(n-1)) for n >= 1, without overflow for any n.
[[nodiscard]] duration backoff_bound(const backoff_policy& policy, std::uint64_t n);

// The wait before retry n: random(0, bound) with jitter, the bound without. `draw` is uniform in [0, 1).
// Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("full jitter").
[[nodiscard]] duration backoff_delay(const backoff_policy& policy, std::uint64_t n, double draw);

// With a Retry-After: a floor plus jitter, so that the clients told the same instant don't all come back at it.
[[nodiscard]] duration delay_with_retry_after(const backoff_policy& policy, duration retry_after, double draw);

}  // namespace onay::core
