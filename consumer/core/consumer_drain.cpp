// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Leaving: hand back what never started, let the rest finish, say BYE. The states: none -> draining (until nothing is
// left or the deadline passes) -> parting (BYE said) -> done (every sender has answered).
#include "core/consumer_core.hpp"

#include <algorithm>

namespace onay::core {

namespace {

constexpr std::size_t others_max = 16'384;  // what always fits a frame
constexpr std::size_t bytes_max = 1U << 20U;

}  // namespace

void consumer_core::begin_drain(instant now, time_point deadline) {
  if (drain_ != drain_state::none) {
    drain_deadline_ = std::min(drain_deadline_, deadline);
    return;
  }
  drain_ = drain_state::draining;
  drain_deadline_ = deadline;
  links_.close();
  settled_before_drain_ = counters_.accepted + counters_.retried + counters_.rejected;
  released_before_drain_ = counters_.released;
  release_queue(now, duration::zero());
  for (auto& [id, s] : sessions_) {
    for (auto tag : std::exchange(s->asking, {})) {
      auto* d = s->tags.find(tag)->delivery;
      --asking_;
      settle_with(now, d, settlement::release, {});
    }
    withdraw(*s);
  }
  alone_ = nullptr;
}

// Part of `flush`: a BYE has views of settlements, which a later input could end.
void consumer_core::drain_step(instant now) {
  if (drain_ == drain_state::draining) {
    bool open = dispatched_ > 0 || !running_.empty() || !waiting_.empty() || burying_ > 0;
    for (auto& [id, s] : sessions_) {
      open = open || !s->tags.empty();
    }
    const bool late = now.boot >= drain_deadline_;
    if (open && !late) {
      return;
    }
    for (auto* d : running_) {
      if (!d->stop_fired) {
        d->stop_fired = true;
        stops.push_back(d);
      }
    }
    drain_ = drain_state::parting;
    for (auto& [id, s] : sessions_) {
      say_bye(now, *s);
    }
  }
  if (drain_ == drain_state::parting) {
    if (sessions_.empty()) {
      drain_ = drain_state::done;
      return;
    }
    for (auto& [id, s] : sessions_) {
      if (s->beat.due(now.boot)) {
        (void)s->beat.next_beat(now.boot);  // the BYE takes the heartbeat's place
        say_bye(now, *s);
      }
    }
  }
}

void consumer_core::say_bye(instant, consumer_session& s) {
  s.parting = true;
  if (links_.ready(s.id)) {
    frames.push_back({s.to, farewell(s)});
  }
}

bye consumer_core::farewell(consumer_session& s) {
  bye b;
  b.session = s.id;
  b.last_tag = s.highest_seen;
  std::size_t bytes = 0;
  s.tags.for_each([&](std::uint64_t tag, slot& t) {
    if (t.settled && t.kind == settlement::accept && !t.extra) {
      b.accepted.append(tag);
    } else if (t.settled) {
      if (b.others.size() < others_max &&
          bytes < bytes_max) {  // the rest was said by SETTLE; it is reported as unconfirmed
        b.others.push_back(item_of(tag, t));
        bytes += b.others.back().result.size() + b.others.back().text.size();
      }
    } else if (t.delivery != nullptr &&
               (t.delivery->at == held::stage::running || t.delivery->at == held::stage::dispatched)) {
      b.running.append(tag);  // dispatched: nobody can say that it hasn't started
    }
  });
  return b;
}

consumer_core::drain_report consumer_core::report() {
  drain_report r;
  r.settled = counters_.accepted + counters_.retried + counters_.rejected - settled_before_drain_;
  r.released = counters_.released - released_before_drain_;
  r.running = dispatched_ + running_.size();
  r.dead_letters = burying_;
  for (auto& [id, s] : sessions_) {
    s->tags.for_each([&](std::uint64_t, slot& t) { r.unconfirmed += t.settled ? 1 : 0; });
  }
  return r;
}

}  // namespace onay::core
