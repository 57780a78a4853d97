// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/pulse.hpp"

namespace onay::core {

pulse::pulse(role own, duration lease, duration heartbeat, time_point start)
    : own_(own),
      lease_(lease),
      heartbeat_(heartbeat),
      lease_start_(start),
      next_(start),
      probe_interval_(first_probe()) {}

time_point pulse::lease_end() const {
  const auto end = after(lease_start_, lease_);
  return own_ == role::sender ? after(end, 2 * heartbeat_) : end;
}

pulse::heard pulse::handle_heartbeat(time_point now, std::uint64_t number, std::uint64_t echo, bool answer_now) {
  if (number <= seen_ || echo > sent_) {
    return {};
  }
  seen_ = number;
  owed_ = owed_ || answer_now;
  if (echo <= echoed_) {
    return {true, false};
  }
  echoed_ = echo;
  if (own_ == role::sender) {
    lease_start_ = now;
    return {true, true};
  }
  while (!unechoed_.empty() && unechoed_.front().number <= echo) {
    // An echo of nothing (time_point::min) proves nothing about the sender's clock.
    if (unechoed_.front().echo_first_sent > lease_start_) {
      lease_start_ = unechoed_.front().echo_first_sent;
    }
    unechoed_.pop_front();
  }
  return {true, true};
}

void pulse::forgive(duration excess) {
  if (own_ == role::sender) {
    lease_start_ = after(lease_start_, excess);
  }
}

void pulse::expect_answer(time_point now) {
  if (probe_at_ == never) {
    probe_interval_ = first_probe();
    probe_at_ = now + probe_interval_;
  }
}

void pulse::keep_expecting(time_point now) {
  if (probe_at_ == never) {
    probe_at_ = now + probe_interval_;
  }
}

pulse::beat pulse::next_beat(time_point now) {
  const bool probing = now >= probe_at_;
  if (probing) {
    probe_interval_ = std::min(2 * probe_interval_, heartbeat_);
    probe_at_ = now + probe_interval_;
  }
  owed_ = false;
  next_ = now + heartbeat_;
  ++sent_;
  if (own_ == role::consumer) {
    if (seen_ != last_echo_) {
      last_echo_ = seen_;
      last_echo_first_sent_ = now;
    }
    unechoed_.push_back({sent_, last_echo_first_sent_});
    // A line that is silent in one direction must not grow the list; dropping an old one only shortens our own lease.
    if (unechoed_.size() > 1024) {
      unechoed_.pop_front();
    }
  }
  return {sent_, seen_, probing};
}

}  // namespace onay::core
