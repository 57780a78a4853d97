// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "receipts.hpp"

#include <algorithm>

namespace onay::sim {
namespace {

// 32 bits of microseconds: differences are right up to 71 minutes, and the callback below stays small enough for
// std::function to keep it without an allocation.
std::uint32_t low_us(time_point t) { return static_cast<std::uint32_t>(t.time_since_epoch().count()); }

ending ending_of(const settled_message& how) {
  if (how.refused()) return ending::refused;
  switch (how.state) {
    case final_state::accepted:
      return ending::accepted;
    case final_state::dead_lettered:
      return ending::dead_lettered;
    default:
      return ending::unknown;
  }
}

}  // namespace

void receipt_book::follow(std::uint64_t message, time_point called_at, const receipt& ticket) {
  if (!first_sent_) first_sent_ = called_at;
  endings_[message] = ending::open;
  const auto sent = sent_.fetch_add(1, std::memory_order_relaxed) + 1;
  open_max_ = std::max(open_max_, sent - std::min(sent, settled()));
  ticket.on_settled([this, index = static_cast<std::uint32_t>(message),
                     at = low_us(called_at)](const settled_message& how) { settle(index, at, how); });
}

void receipt_book::settle(std::uint32_t message, std::uint32_t called_at_us, const settled_message& how) {
  const auto now = boot_clock::now();
  const auto end = ending_of(how);
  endings_[message] = end;
  {
    const std::lock_guard lock(mutex_);
    // A close without an answer is no receipt.
    if (end != ending::unknown) last_settled_ = now;
    if (end == ending::accepted) latency_.add(low_us(now) - called_at_us);
  }
  if (end == ending::dead_lettered) dead_.fetch_add(1, std::memory_order_relaxed);
  settled_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace onay::sim
