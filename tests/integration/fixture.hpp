// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What the integration tests share: options with short times, and waiting on conditions with a bound.
#pragma once

#include "support/catch.hpp"

#include <onay/onay.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace onay::test {

using namespace std::chrono_literals;

// How long any wait may take before the test fails. Nothing ever waits that long unless something is broken.
inline constexpr std::chrono::seconds patience{30};

// An event that threads wait for.
class event {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();  // under the lock: whoever waits may destroy this at once
  }
  bool wait(std::chrono::milliseconds longest = patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, longest, [&] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// For conditions that nobody announces (counters of a status): looks every millisecond.
inline bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds longest = patience) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline sender_options sending(endpoint e) {
  sender_options o;
  o.endpoints = {std::move(e)};
  return o;
}

// Idempotent, discards what it condemns, retries at once.
inline consumer_options receiving(endpoint e) {
  consumer_options o;
  o.endpoints = {std::move(e)};
  o.handler = idempotence::idempotent;
  o.dead_letters = discard{};
  o.concurrency = 1;
  o.backoff.base = 1ms;
  o.backoff.cap = 10ms;
  return o;
}

inline message letter(std::string key, std::string payload = "payload") {
  return {.key = operation_key(std::move(key)), .payload = std::move(payload), .headers = {}, .deadline = {}};
}

// The outcome, or nothing (and a failed check) if it doesn't come.
inline settled_message outcome_of(const receipt& r) {
  const auto* m = r.wait_for(patience);
  CHECK(m != nullptr);
  return m == nullptr ? settled_message{} : *m;
}

inline handler accepting() {
  return [](const delivery&, context&) { return accept(); };
}

}  // namespace onay::test
