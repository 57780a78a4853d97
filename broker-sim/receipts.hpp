// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What the sender said about each message, one byte a message, and how long it took to say it.
#pragma once

#include "histogram.hpp"

#include <onay/receipt.hpp>
#include <onay/time.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace onay::sim {

enum class ending : std::uint8_t { unsent, open, accepted, dead_lettered, unknown, refused };

class receipt_book {
 public:
  explicit receipt_book(std::uint64_t messages) : endings_(messages, ending::unsent) {}
  receipt_book(const receipt_book&) = delete;
  receipt_book& operator=(const receipt_book&) = delete;

  // Follows a message from now on: `called_at` is when `send` was called. From the sending thread.
  void follow(std::uint64_t message, time_point called_at, const receipt& ticket);

  // For tests: as if that had been told.
  void assume(std::uint64_t message, ending end) { endings_[message] = end; }

  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t settled() const { return settled_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t dead_lettered() const { return dead_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t open_max() const { return open_max_; }

  // The rest only when nothing is followed any more: the sender is closed.
  [[nodiscard]] ending of(std::uint64_t message) const { return endings_[message]; }
  [[nodiscard]] std::uint64_t size() const { return endings_.size(); }
  [[nodiscard]] const histogram& latency() const { return latency_; }  // us, of the accepted ones
  [[nodiscard]] std::optional<time_point> first_sent() const { return first_sent_; }
  [[nodiscard]] std::optional<time_point> last_settled() const { return last_settled_; }

 private:
  void settle(std::uint32_t message, std::uint32_t called_at_us, const settled_message& how);

  std::vector<ending> endings_;
  std::atomic<std::uint64_t> sent_ = 0, settled_ = 0, dead_ = 0;
  std::uint64_t open_max_ = 0;              // sending thread
  std::optional<time_point> first_sent_;    // sending thread
  std::mutex mutex_;                        // the callback thread's, and the sending thread's when it's late
  histogram latency_;                       // under mutex_
  std::optional<time_point> last_settled_;  // under mutex_
};

}  // namespace onay::sim
