// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/send_gate.hpp"

#include "shell/clock.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace onay::shell {

namespace {

// A send frees as many settled messages as it makes, so that the allocator finds one at hand; two when many wait.
constexpr std::size_t freed_per_send = 2;
constexpr std::size_t many_removed = 512;
constexpr std::size_t removed_max = 1'024;

}  // namespace

send_gate::send_gate(std::uint64_t messages_max, std::uint64_t bytes_max, wake& reader)
    : messages_max_(messages_max), bytes_max_(bytes_max), wake_(reader) {}

// A message above the limit of bytes passes alone.
bool send_gate::has_room(std::uint64_t bytes) const {
  return messages_ == 0 || (messages_ < messages_max_ && bytes_ < bytes_max_ && bytes <= bytes_max_ - bytes_);
}

send_error send_gate::put(std::unique_lock<std::mutex>& lock, submission&& s) {
  ++messages_;
  bytes_ += s.message->size();
  items_.push_back(std::move(s));
  const bool asleep = std::exchange(asleep_, false);
  std::array<std::unique_ptr<core::stored_message>, freed_per_send> removed;
  const auto count = std::min(removed_.size(), removed_.size() > many_removed ? freed_per_send : 1);
  for (std::size_t i = 0; i < count; ++i) {
    removed[i] = std::move(removed_.back());
    removed_.pop_back();
  }
  lock.unlock();
  if (asleep) {
    wake_.signal();
  }
  return send_error::none;
}

send_error send_gate::try_enter(submission&& s) {
  std::unique_lock lock(mutex_);
  if (closed_) {
    return send_error::closed;
  }
  return has_room(s.message->size()) ? put(lock, std::move(s)) : send_error::would_block;
}

send_error send_gate::enter(submission&& s, std::optional<duration> timeout) {
  std::unique_lock lock(mutex_);
  const auto size = s.message->size();
  if (!closed_ && !has_room(size)) {
    const auto ready = [&] { return closed_ || has_room(size); };
    ++waiting_;
    if (timeout) {
      changed_.wait_until(lock, steady_after(*timeout), ready);
    } else {
      changed_.wait(lock, ready);
    }
    --waiting_;
  }
  if (closed_) {
    return send_error::closed;
  }
  return has_room(size) ? put(lock, std::move(s)) : send_error::would_block;
}

void send_gate::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool send_gate::wait_idle(clock::time_point end) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const bool idle = changed_.wait_until(lock, end, [&] { return messages_ == 0; });
  --waiting_;
  return idle;
}

void send_gate::leave(std::uint64_t messages, std::uint64_t bytes) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    messages_ -= messages;
    bytes_ -= bytes;
    freed_messages_ += messages;
    freed_bytes_ += bytes;
    notify = waiting_ > 0 && worth_waking();
    if (notify) {
      freed_messages_ = freed_bytes_ = 0;
    }
  }
  if (notify) {
    changed_.notify_all();
  }
}

// An eighth has been freed since the last time, or nothing is going to happen first.
bool send_gate::worth_waking() const {
  return messages_ == 0 || asleep_ || freed_messages_ >= messages_max_ / 8 || freed_bytes_ >= bytes_max_ / 8;
}

void send_gate::discard(std::vector<std::unique_ptr<core::stored_message>>& removed) {
  {
    const std::lock_guard lock(mutex_);
    if (removed_.empty()) {
      removed_.swap(removed);
    } else if (removed_.size() + removed.size() <= removed_max) {
      removed_.insert(removed_.end(), std::make_move_iterator(removed.begin()), std::make_move_iterator(removed.end()));
    }
  }
  removed.clear();
}

send_gate::load send_gate::look() const {
  const std::lock_guard lock(mutex_);
  return {messages_, bytes_};
}

bool send_gate::take(std::vector<submission>& out) {
  out.clear();
  const std::lock_guard lock(mutex_);
  asleep_ = false;
  items_.swap(out);
  return !out.empty();
}

bool send_gate::sleep() {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (!items_.empty()) {
      return false;
    }
    asleep_ = true;
    notify = waiting_ > 0 && freed_messages_ > 0;
    freed_messages_ = freed_bytes_ = 0;
  }
  if (notify) {
    changed_.notify_all();
  }
  return true;
}

}  // namespace onay::shell
