// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What the cores are given instead of clocks and entropy.
#pragma once

#include <onay/time.hpp>

#include <cstdint>

namespace onay::core {

inline constexpr time_point never = time_point::max();

// One reading of both clocks. `boot` decides; `utc` is only written into retry records.
struct instant {
  time_point boot{};
  utc_time utc{};
};

// 64 random bits that two lives of a process never share. Not the policy's generator.
class entropy {
 public:
  virtual ~entropy() = default;
  virtual std::uint64_t next() = 0;
};

// now + d without overflow.
[[nodiscard]] constexpr time_point after(time_point t, duration d) { return d > never - t ? never : t + d; }

}  // namespace onay::core
