// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/decision.hpp"

#include "support/catch.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>

using namespace onay::core;
using onay::duration;
using onay::error_class;
using onay::reason;
using namespace std::chrono_literals;

namespace {

constexpr error_class retryable[] = {error_class::transient, error_class::overload, error_class::rolled_back};

retry_policy five_attempts() {
  retry_policy policy;
  policy.attempts_max = 5;
  return policy;
}

void check_rejected(const decision& d, reason why) {
  CHECK(d.kind == settlement::reject);
  CHECK(d.why == why);
  CHECK(d.delay == 0s);
}

}  // namespace

TEST_CASE("permanent and unauthorized failures are rejected on the first attempt, whatever was asked", "[decision]") {
  check_rejected(decide({error_class::permanent, 1, 3s, {}}, five_attempts(), 0.5), reason::rejected);
  check_rejected(decide({error_class::unauthorized, 1, 3s, {}}, five_attempts(), 0.5), reason::unauthorized);
}

TEST_CASE("what nothing classified is permanent", "[decision]") {
  check_rejected(decide({error_class::none, 1, {}, {}}, five_attempts(), 0.5), reason::rejected);
  check_rejected(decide({static_cast<error_class>(200), 1, {}, {}}, five_attempts(), 0.5), reason::rejected);
}

TEST_CASE("an uncertain failure is repeated only by an idempotent handler", "[decision]") {
  retry_policy policy = five_attempts();
  CHECK(decide({error_class::uncertain, 1, {}, {}}, policy, 0.5).kind == settlement::retry);
  policy.handler_is_idempotent = false;
  check_rejected(decide({error_class::uncertain, 1, {}, {}}, policy, 0.5), reason::outcome_unknown);
  // Also when it was the last attempt: that the effect may have happened matters more to whoever reads it.
  check_rejected(decide({error_class::uncertain, 5, {}, {}}, policy, 0.5), reason::outcome_unknown);
  CHECK(decide({error_class::transient, 1, {}, {}}, policy, 0.5).kind == settlement::retry);
}

TEST_CASE("the attempts allowed are exactly those that start", "[decision]") {
  for (std::uint32_t attempts_max : {1U, 2U, 3U}) {
    retry_policy policy;
    policy.attempts_max = attempts_max;
    for (auto cls : retryable) {
      std::uint32_t attempt = 1;
      while (decide({cls, attempt, {}, {}}, policy, 0.5).kind == settlement::retry) {
        ++attempt;
      }
      CHECK(attempt == attempts_max);
      check_rejected(decide({cls, attempt, {}, {}}, policy, 0.5), reason::attempts_exhausted);
      check_rejected(decide({cls, attempt + 1, {}, {}}, policy, 0.5), reason::attempts_exhausted);
    }
  }
}

TEST_CASE("the last attempt is rejected at once although Retry-After asks to wait", "[decision]") {
  check_rejected(decide({error_class::overload, 5, 10s, 1h}, five_attempts(), 0.5), reason::attempts_exhausted);
}

TEST_CASE("without a limit of attempts the last number is retried like the first", "[decision]") {
  const decision d = decide({error_class::transient, 0xffffffff, {}, {}}, {}, 0.999999);
  CHECK(d.kind == settlement::retry);
  CHECK(d.delay > 29s);
  CHECK(d.delay <= 30s);
}

TEST_CASE("the delay follows the attempt that failed", "[decision]") {
  retry_policy policy;
  policy.backoff.jitter = false;
  CHECK(decide({error_class::transient, 1, {}, {}}, policy, 0.5).delay == 100ms);
  CHECK(decide({error_class::transient, 4, {}, {}}, policy, 0.5).delay == 800ms);
  policy.backoff.jitter = true;
  CHECK(decide({error_class::transient, 4, {}, {}}, policy, 0.25).delay == 200ms);
}

TEST_CASE("Retry-After wins over the backoff, also when it is shorter", "[decision]") {
  retry_policy policy;
  policy.backoff.jitter = false;
  for (auto cls : retryable) {
    CHECK(decide({cls, 9, 3s, {}}, policy, 0.5).delay == 3s);
    CHECK(decide({cls, 1, 3s, {}}, policy, 0.5).delay == 3s);
    CHECK(decide({cls, 9, 0s, {}}, policy, 0.5).delay == 0s);
  }
}

TEST_CASE("a negative Retry-After is ignored", "[decision]") {
  retry_policy policy;
  policy.backoff.jitter = false;
  for (duration odd : {duration(-1us), duration(-1s), duration::min()}) {
    CHECK(decide({error_class::overload, 3, odd, {}}, policy, 0.5).delay == 400ms);
  }
}

TEST_CASE("Retry-After is cut to its cap before anything else", "[decision]") {
  retry_policy policy;
  policy.retry_after_cap = 10s;
  for (duration huge : {duration(11s), duration(std::chrono::seconds(9'223'372'037)), duration::max()}) {
    const decision d = decide({error_class::overload, 1, huge, 1h}, policy, 0.999999);
    CHECK(d.kind == settlement::retry);
    CHECK(d.delay >= 10s);
    CHECK(d.delay <= 10400ms);
  }
  CHECK(decide({error_class::overload, 1, 3s, 1h}, policy, 0.0).delay == 3s);
}

TEST_CASE("without a cap the largest Retry-After is obeyed or rejected, never wrapped", "[decision]") {
  CHECK(decide({error_class::overload, 1, duration::max(), {}}, {}, 0.9).delay == duration::max());
  check_rejected(decide({error_class::overload, 1, duration::max(), duration::max()}, {}, 0.9), reason::too_old);
}

TEST_CASE("a retry that can't start before the message's limit is rejected now", "[decision]") {
  retry_policy policy;
  policy.backoff.jitter = false;
  check_rejected(decide({error_class::overload, 1, 30s, 10s}, policy, 0.0), reason::too_old);
  check_rejected(decide({error_class::overload, 1, 10s, 10s}, policy, 0.0), reason::too_old);
  CHECK(decide({error_class::overload, 1, 10s, 10s + 1us}, policy, 0.0).kind == settlement::retry);
  check_rejected(decide({error_class::transient, 4, {}, 800ms}, policy, 0.0), reason::too_old);
  CHECK(decide({error_class::transient, 4, {}, 801ms}, policy, 0.0).kind == settlement::retry);
  check_rejected(decide({error_class::transient, 1, 0s, 0s}, policy, 0.0), reason::too_old);
  check_rejected(decide({error_class::transient, 1, 0s, -1s}, policy, 0.0), reason::too_old);
}

TEST_CASE("every decision is a retry with a possible delay or a rejection with a reason", "[decision]") {
  std::mt19937_64 random(3);
  const auto any_duration = [&] {
    return duration(static_cast<duration::rep>(random()) >> (random() % 64));  // of any size and sign
  };
  std::set<reason> seen;
  for (int i = 0; i < 100'000; ++i) {
    failed_attempt failed;
    failed.cls = static_cast<error_class>(random() % 8);
    failed.attempt = static_cast<std::uint32_t>(1 + (random() >> (32 + random() % 32)));
    retry_policy policy;
    policy.handler_is_idempotent = random() % 2 == 0;
    policy.backoff.jitter = random() % 2 == 0;
    if (random() % 2 == 0) {
      failed.retry_after = any_duration();
    }
    if (random() % 2 == 0) {
      failed.time_left = any_duration();
    }
    if (random() % 2 == 0) {
      policy.attempts_max = static_cast<std::uint32_t>(1 + random() % 100);
    }
    if (random() % 2 == 0) {
      policy.retry_after_cap = any_duration();
    }
    const decision d = decide(failed, policy, static_cast<double>(random() >> 11U) * 0x1p-53);
    REQUIRE(d.delay >= 0s);
    REQUIRE((d.kind == settlement::retry) == (d.why == reason::none));
    REQUIRE((d.kind == settlement::retry || d.kind == settlement::reject));
    if (d.kind == settlement::retry) {
      REQUIRE((!failed.time_left || d.delay < *failed.time_left));
      REQUIRE((!policy.attempts_max || failed.attempt < *policy.attempts_max));
    }
    seen.insert(d.why);
  }
  CHECK(seen == std::set<reason>{reason::none, reason::rejected, reason::unauthorized, reason::outcome_unknown,
                                 reason::attempts_exhausted, reason::too_old});
}

TEST_CASE("every value has a name, and values outside of the list have a question mark", "[outcome]") {
  const auto check_names = [](auto last) {
    using list = decltype(last);
    std::set<std::string> names;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      names.emplace(to_string(static_cast<list>(i)));
    }
    CHECK(names.size() == static_cast<std::size_t>(last) + 1);
    CHECK_FALSE(names.contains("?"));
    CHECK(to_string(static_cast<list>(static_cast<int>(last) + 1)) == "?");
    CHECK(to_string(static_cast<list>(255)) == "?");
  };
  check_names(error_class::uncertain);
  check_names(reason::unsupported_version);
  check_names(onay::final_state::unknown);
  CHECK(to_string(reason::attempts_exhausted) == "attempts_exhausted");
  CHECK(to_string(error_class::rolled_back) == "rolled_back");
  CHECK(to_string(onay::final_state::dead_lettered) == "dead_lettered");
}
