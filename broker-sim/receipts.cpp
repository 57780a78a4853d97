// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "receipts.hpp"

#include <algorithm>
#include <utility>

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
  // What is settled but not collected yet isn't held any more.
  const auto open = sent - std::min(sent, settled());
  open_max_ = std::max(open_max_, time_all_ ? open : std::min(open, held_max_));
  if (times(message)) {
    ticket.on_settled([this, index = static_cast<std::uint32_t>(message),
                       at = low_us(called_at)](const settled_message& how) { settle(index, at, how); });
    return;
  }
  followed_.push_back({static_cast<std::uint32_t>(message), ticket});
  // Two for one: catches up. Behind one that takes long there may be many that are settled.
  for (int i = 0; i < 2 && !followed_.empty() && collect_one(followed_.front()); ++i) followed_.pop_front();
  if (followed_.size() > held_max_ + held_max_ / 4) collect();
}

void receipt_book::collect() {
  std::erase_if(followed_, [this](const followed& f) { return collect_one(f); });
  if (std::exchange(collected_, false)) {
    const std::lock_guard lock(mutex_);
    last_settled_ = boot_clock::now();
  }
}

bool receipt_book::collect_one(const followed& f) {
  const auto* how = f.ticket.poll();
  if (how == nullptr) return false;
  // A close without an answer is no receipt.
  collected_ = note(f.message, *how) != ending::unknown || collected_;
  return true;
}

// The order matters: what is counted as settled has its ending.
ending receipt_book::note(std::uint32_t message, const settled_message& how) {
  const auto end = ending_of(how);
  endings_[message] = end;
  if (end == ending::dead_lettered) dead_.fetch_add(1, std::memory_order_relaxed);
  settled_.fetch_add(1, std::memory_order_relaxed);
  return end;
}

void receipt_book::settle(std::uint32_t message, std::uint32_t called_at_us, const settled_message& how) {
  const auto now = boot_clock::now();
  {
    const auto end = ending_of(how);
    const std::lock_guard lock(mutex_);
    if (end != ending::unknown) last_settled_ = now;
    if (end == ending::accepted) latency_.add(low_us(now) - called_at_us);
  }
  note(message, how);
}

}  // namespace onay::sim
