// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "upstream.hpp"

#include "effects.hpp"
#include "fault_filter.hpp"

#include "shell/access.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <thread>

namespace onay::sim {
namespace {

// How long anything waits before it looks for an interruption.
constexpr duration glance = std::chrono::milliseconds(50);

sender_options to_sender(const upstream_settings& s) {
  sender_options o;
  o.endpoints = s.endpoints;
  o.logical_id = s.logical_id;
  if (s.lease) o.lease = *s.lease;
  // A fifth, not the quarter that is allowed: rounding must not make it more.
  o.heartbeat = s.heartbeat.value_or(std::min(o.heartbeat, o.lease / 5));
  if (s.age_max) o.age_max = *s.age_max;
  if (s.unsettled) o.unsettled_max = *s.unsettled;
  if (s.unsettled_bytes) o.unsettled_bytes_max = {*s.unsettled_bytes};
  o.payload_max.bytes = std::min(o.payload_max.bytes, o.unsettled_bytes_max.bytes / 2);
  o.dead_letters = s.dead_letters;
  return o;
}

}  // namespace

upstream::upstream(upstream_settings settings, load& messages)
    : settings_(std::move(settings)),
      load_(messages),
      book_(messages.size(), settings_.unsettled.value_or(sender_options{}.unsettled_max),
            messages.options().rate > 0) {
  if (settings_.age_max) sent_at_.resize(messages.size());
  if (settings_.faults.any()) {
    filter_ = std::make_unique<fault_filter>(settings_.faults);
    sender_ = shell::access::make(to_sender(settings_), *filter_);
  } else {
    sender_ = std::make_unique<sender>(to_sender(settings_));
  }
}

upstream::~upstream() { sender_.reset(); }  // before the filter and the book that it uses

std::vector<std::string> upstream::addresses() const { return sender_->addresses(); }

bool upstream::send_one(const interruption& ask, unsigned& stop) {
  for (;;) {
    const auto number = book_.sent();
    const auto now = book_.times(number) || !sent_at_.empty() ? boot_clock::now() : time_point();
    const auto sent = sender_->send_for(load_.current(), glance);
    if (sent) {
      if (!sent_at_.empty()) sent_at_[number] = to_ticks(now - settings_.beginning);
      book_.follow(number, now, sent.ticket);
      return true;
    }
    if (sent.error != send_error::would_block) {
      failure_ = fmt::format("message {} was refused: {}", number + 1, to_string(sent.error));
      return false;
    }
    stop = stalled() ? 2 : ask(*this);
    if (stop != 0) return true;
  }
}

bool upstream::stalled() {
  book_.collect();
  const auto now = boot_clock::now();
  if (const auto settled = book_.settled(); settled != settled_before_ || moved_at_ == time_point()) {
    settled_before_ = settled;
    moved_at_ = now;
  }
  return now - moved_at_ > settings_.stall_max;
}

upstream_end upstream::run(const interruption& ask) {
  const double rate = load_.options().rate;
  const auto begun = boot_clock::now();
  auto asked = begun;
  unsigned stop = 0;
  for (std::uint64_t n = 0; n < load_.size() && stop == 0; ++n) {
    if (rate > 0) {
      const auto due = begun + duration(static_cast<std::int64_t>(static_cast<double>(n) * 1e6 / rate));
      for (auto now = boot_clock::now(); now < due && stop == 0; now = boot_clock::now()) {
        std::this_thread::sleep_for(std::min<duration>(due - now, glance));
        stop = ask(*this);
      }
    } else if (n % 256 == 0 && boot_clock::now() - asked > glance) {
      asked = boot_clock::now();
      stop = ask(*this);
    }
    if (stop != 0) break;
    if (!send_one(ask, stop)) return upstream_end::failed;
    if (stop != 0) break;
    try {
      load_.advance();
    } catch (const bad_input& e) {
      failure_ = e.what();
      return upstream_end::failed;
    }
  }
  if (stalled()) return upstream_end::stalled;
  for (;;) {
    const bool idle = sender_->wait_idle(glance);
    book_.collect();
    if (idle && book_.settled() == book_.sent()) break;
    if (stop = ask(*this); stop >= 2) return upstream_end::abandoned;
    if (stalled()) return upstream_end::stalled;
    if (idle) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a callback is on its way
  }
  return stop == 0 ? upstream_end::settled : upstream_end::interrupted;
}

void upstream::close(duration patience) {
  if (!sender_) return;
  sender_->close(patience);
  book_.collect();
  last_status_ = sender_->status();
  sender_.reset();
  if (filter_) faults_ = filter_->counts();
}

bool upstream::has_peers(std::size_t count) const {
  const auto now = status();
  const auto connected = [](const peer_status& p) { return p.connected; };
  return static_cast<std::size_t>(std::count_if(now.peers.begin(), now.peers.end(), connected)) >= count;
}

sender_status upstream::status() const { return last_status_ ? *last_status_ : sender_->status(); }

fault_counts upstream::faults() const { return faults_.value_or(fault_counts{}); }

}  // namespace onay::sim
