// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// Durations, the clock that every decision runs on, and limits that can be lifted.
#pragma once

#if __cplusplus < 202002L && (!defined(_MSVC_LANG) || _MSVC_LANG < 202002L)
#error "onay needs C++20: compile with -std=c++20"
#endif

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>

namespace onay {

/// Every duration in options, on the wire and in reports. One microsecond is also the wire's unit.
using duration = std::chrono::microseconds;

/// The clock of leases, delays, ages and deadlines: CLOCK_BOOTTIME, which never steps and goes on counting while the
/// machine is suspended. The wall clock is never used for a decision. Thread-safe.
struct boot_clock {
  using duration = onay::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<boot_clock, duration>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
};

/// An instant of the boot clock. Means nothing on another machine or after a reboot.
using time_point = boot_clock::time_point;

/// A wall-clock instant, UTC, for people to read in retry records. Decides nothing.
using utc_time = std::chrono::time_point<std::chrono::system_clock, duration>;

/// Spells "no limit" where an option allows it: `options.attempts_max = onay::no_limit;`. Zero and negative values are
/// refused everywhere instead of meaning it by accident.
struct no_limit_t {};
inline constexpr no_limit_t no_limit{};

/// A bound that can be lifted explicitly. Converts from a value or from `no_limit`; compares by value.
template <class T>
class limit {
 public:
  constexpr limit(T value) : value_(value) {}  // NOLINT(google-explicit-constructor): reads as a plain field
  constexpr limit(no_limit_t) {}               // NOLINT(google-explicit-constructor)
  template <std::convertible_to<T> U>
  constexpr limit(U value) : value_(T(value)) {}  // NOLINT(google-explicit-constructor)

  /// False when there is no limit.
  [[nodiscard]] constexpr bool bounded() const { return value_.has_value(); }
  /// The bound; only when `bounded()`.
  [[nodiscard]] constexpr T value() const { return *value_; }
  [[nodiscard]] constexpr T value_or(T other) const { return value_.value_or(other); }
  friend constexpr bool operator==(const limit&, const limit&) = default;

 private:
  std::optional<T> value_;
};

/// A number of bytes; a type of its own so that it can't be mistaken for a count of messages.
struct byte_size {
  std::uint64_t bytes = 0;
  friend constexpr auto operator<=>(byte_size, byte_size) = default;
};

namespace literals {
constexpr byte_size operator""_B(unsigned long long n) { return {n}; }
constexpr byte_size operator""_KiB(unsigned long long n) { return {n << 10U}; }
constexpr byte_size operator""_MiB(unsigned long long n) { return {n << 20U}; }
}  // namespace literals

}  // namespace onay
