// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/backoff.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

using namespace onay::core;
using onay::duration;
using namespace std::chrono_literals;

namespace {

constexpr backoff_policy without_jitter{200ms, 30s, false};
constexpr backoff_policy with_jitter{200ms, 30s, true};
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// C12
TEST_CASE("without jitter the delay doubles up to the cap and stays there for any n", "[backoff]") {
  duration expected = 200ms;
  for (std::uint64_t n = 1; n <= 8; ++n, expected *= 2) {
    CHECK(backoff_delay(without_jitter, n, 0.3) == expected);
  }
  for (std::uint64_t n = 9; n <= 2000; ++n) {
    REQUIRE(backoff_delay(without_jitter, n, 0.3) == 30s);
  }
  for (std::uint64_t n : {std::uint64_t{0x7fffffff}, std::uint64_t{0xffffffff}, ~std::uint64_t{0}}) {
    CHECK(backoff_delay(without_jitter, n, 0.3) == 30s);
  }
  CHECK(backoff_bound(without_jitter, 0) == 200ms);  // no such retry; not less than the first
}

TEST_CASE("the bound agrees with arithmetic that can't overflow", "[backoff]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    backoff_policy policy;
    policy.cap = duration(static_cast<duration::rep>(random() >> (1 + random() % 62)) + 1);
    policy.base = duration(1 + static_cast<duration::rep>(random() % static_cast<std::uint64_t>(policy.cap.count())));
    const std::uint64_t n = 1 + random() % 80;
    const long double exact = std::ldexp(static_cast<long double>(policy.base.count()), static_cast<int>(n) - 1);
    const long double cap = static_cast<long double>(policy.cap.count());
    REQUIRE(static_cast<long double>(backoff_bound(policy, n).count()) == std::min(exact, cap));
  }
}

TEST_CASE("full jitter spreads over the whole interval and never leaves it", "[backoff]") {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> draw;
  duration sum{};
  duration least = duration::max();
  for (int i = 0; i < 10'000; ++i) {
    const duration d = backoff_delay(with_jitter, 20, draw(random));
    REQUIRE(d >= 0s);
    REQUIRE(d <= 30s);
    sum += d;
    least = std::min(least, d);
  }
  CHECK(sum / 10'000 > 14s);
  CHECK(sum / 10'000 < 16s);
  CHECK(least < 1s);
}

TEST_CASE("a draw outside of its range never makes a wait negative or longer than its bound", "[backoff]") {
  const backoff_policy longest{duration::max(), duration::max(), true};
  for (double draw : {-1.0, -0.0, 0.0, 0.5, std::nextafter(1.0, 0.0), 1.0, 2.0, not_a_number, HUGE_VAL, -HUGE_VAL}) {
    for (const auto& policy : {with_jitter, longest, backoff_policy{1us, 1us, true}}) {
      const duration d = backoff_delay(policy, 3, draw);
      CHECK(d >= 0s);
      CHECK(d <= backoff_bound(policy, 3));
      for (duration floor : {duration(-5s), duration(0s), duration(3s), duration::max()}) {
        CHECK(delay_with_retry_after(policy, floor, draw) >= std::max(floor, duration(0s)));
      }
    }
  }
}

TEST_CASE("a policy that validation should have refused still gives no negative wait", "[backoff]") {
  for (duration base : {duration(-1s), duration(0s), duration::min()}) {
    for (duration cap : {duration(-1s), duration(0s), duration(1s)}) {
      for (std::uint64_t n : {0U, 1U, 5U, 64U, 65U}) {
        CHECK(backoff_delay({base, cap, true}, n, 0.9) >= 0s);
        CHECK(backoff_delay({base, cap, false}, n, 0.9) >= 0s);
        CHECK(delay_with_retry_after({base, cap, true}, 1s, 0.9) >= 1s);
      }
    }
  }
}

TEST_CASE("Retry-After is a floor with a little jitter above it", "[backoff]") {
  struct row {
    duration floor;
    duration at_most;
  };
  // The upper ends leave room for the way to the handler.
  for (const auto& [floor, at_most] : {row{0s, 200ms}, row{3s, 3300ms}, row{10s, 10400ms}, row{60s, 62s}}) {
    for (const auto& policy : {backoff_policy{}, with_jitter, backoff_policy{5s, 30s, true}}) {
      CHECK(delay_with_retry_after(policy, floor, 0.0) == floor);
      const duration latest = delay_with_retry_after(policy, floor, 0.999999);
      CHECK(latest > floor + 50ms);
      CHECK(latest <= at_most);
    }
    CHECK(delay_with_retry_after(without_jitter, floor, 0.7) == floor);
  }
}

TEST_CASE("the jitter above a long Retry-After grows with it, up to the backoff's cap", "[backoff]") {
  const backoff_policy policy;
  CHECK(delay_with_retry_after(policy, 1h, 0.999999) > 1h + 29s);
  CHECK(delay_with_retry_after(policy, 1h, 0.999999) <= 1h + 30s);
  CHECK(delay_with_retry_after(policy, duration::max(), 0.9) == duration::max());
  CHECK(delay_with_retry_after(policy, duration::max() - 1us, 0.9) == duration::max());
}
