// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What the sender said about each message, one byte a message, and how long it took to say it.
//
// A callback for each receipt would cost more than all the rest of a message that is sent at full speed. So only every
// 64th message has one, and gives its latency; the other receipts are kept and looked at now and then.
#pragma once

#include "histogram.hpp"

#include <onay/receipt.hpp>
#include <onay/time.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace onay::sim {

enum class ending : std::uint8_t { unsent, open, accepted, dead_lettered, unknown, refused };

class receipt_book {
 public:
  // `held_max`: what the sender holds at most. `time_all`: measure each message's latency.
  explicit receipt_book(std::uint64_t messages, std::uint64_t held_max = 0, bool time_all = true)
      : held_max_(held_max), time_all_(time_all), endings_(messages, ending::unsent) {}
  receipt_book(const receipt_book&) = delete;
  receipt_book& operator=(const receipt_book&) = delete;

  // Whether `follow` reads `called_at` of this message.
  [[nodiscard]] bool times(std::uint64_t message) const { return time_all_ || message % timed_every == 0; }
  // Follows a message from now on: `called_at` is when `send` was called. From the sending thread.
  void follow(std::uint64_t message, time_point called_at, const receipt& ticket);

  // Notes what has been settled since. From the sending thread.
  void collect();

  // For tests: as if that had been told.
  void assume(std::uint64_t message, ending end) { endings_[message] = end; }

  [[nodiscard]] std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t settled() const { return settled_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t dead_lettered() const { return dead_.load(std::memory_order_relaxed); }
  // Of those that were followed and not noted as settled; never more than the sender holds.
  [[nodiscard]] std::uint64_t open_max() const { return open_max_; }

  // The rest only when nothing is followed any more: the sender is closed, and all is collected.
  [[nodiscard]] ending of(std::uint64_t message) const { return endings_[message]; }
  [[nodiscard]] std::uint64_t size() const { return endings_.size(); }
  [[nodiscard]] const histogram& latency() const { return latency_; }  // us, of the accepted ones
  [[nodiscard]] std::optional<time_point> first_sent() const { return first_sent_; }
  [[nodiscard]] std::optional<time_point> last_settled() const { return last_settled_; }

 private:
  static constexpr std::uint64_t timed_every = 64;  // at full speed
  struct followed {
    std::uint32_t message;
    receipt ticket;
  };
  ending note(std::uint32_t message, const settled_message& how);
  void settle(std::uint32_t message, std::uint32_t called_at_us, const settled_message& how);
  bool collect_one(const followed& f);

  const std::uint64_t held_max_;
  const bool time_all_;
  std::deque<followed> followed_;  // sending thread: those without a callback, oldest first
  bool collected_ = false;         // sending thread: some of them, since `last_settled_`
  std::vector<ending> endings_;
  std::atomic<std::uint64_t> sent_ = 0, settled_ = 0, dead_ = 0;
  std::uint64_t open_max_ = 0;              // sending thread
  std::optional<time_point> first_sent_;    // sending thread
  std::mutex mutex_;                        // the callback thread's, and the sending thread's when it's late
  histogram latency_;                       // under mutex_
  std::optional<time_point> last_settled_;  // under mutex_
};

}  // namespace onay::sim
