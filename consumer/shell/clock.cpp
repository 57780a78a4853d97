// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/clock.hpp"

#include <algorithm>
#include <ctime>

namespace onay {

boot_clock::time_point boot_clock::now() noexcept {
  timespec t{};
  // Can't fail: the clock exists since Linux 2.6.39 and `t` is ours.
  clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_nsec / 1000));
}

namespace shell {

core::instant read_clocks() noexcept {
  return {boot_clock::now(), std::chrono::floor<duration>(std::chrono::system_clock::now())};
}

std::chrono::steady_clock::time_point steady_after(duration d) noexcept {
  constexpr duration longest = std::chrono::hours(24 * 365 * 10);
  return std::chrono::steady_clock::now() + std::clamp(d, duration::zero(), longest);
}

}  // namespace shell
}  // namespace onay
