// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Handing over: which message goes to whom, in which frame, and what was lost on the way.
#include "core/sender_core.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace onay::core {

namespace {

// What a delivery costs in a frame beside key, headers and payload; an estimate, only to fill frames evenly.
constexpr std::uint64_t item_overhead = 48;

}  // namespace

void sender_core::flush(instant now) {
  for (auto& [id, s] : sessions_) {
    if (!links_.ready(id)) {
      continue;
    }
    for (auto& a : s->answers) {
      frames.push_back({s->to, std::move(a)});
    }
    s->answers.clear();
    resend_missing(now, *s);
  }
  if (!closing_) {
    deliver_what_fits(now);
    set_overdue_aside(now);
    bury_what_nobody_can(now);
  }
  for (auto& [id, s] : sessions_) {
    if (!links_.ready(id) || !s->beat.due(now.boot)) {
      continue;
    }
    if (s->closing) {  // said until it is answered; it takes the heartbeat's place
      (void)s->beat.next_beat(now.boot);
      frames.push_back({s->to, bye{id, s->highest_tag, {}, {}, {}}});
    } else {
      send_heartbeat(now, *s);
    }
  }
}

void sender_core::want_credit(instant now, std::uint64_t size) {
  wanted_size_ = size;
  wanted_until_ = after(now.boot, 4 * config_.heartbeat);
}

void sender_core::deliver_what_fits(instant now) {
  // Parked retries are bounded: at the limit nothing fresh leaves, so nothing new can fail.
  const bool anyone = std::any_of(sessions_.begin(), sessions_.end(), [](const auto& s) { return !s.second->leaving; });
  const bool parked_full = ledger_.parked() - overdue_.size() - undeliverable_.size() >= config_.parked_max;
  while (auto* m = ledger_.front()) {
    if (parked_full && !m->delivered_once) {
      return;
    }
    bool possible = false;
    auto* s = pick(*m, now.boot, possible);
    if (s != nullptr) {
      const auto share = std::max<std::size_t>(1, ledger_.ready() / sessions_.size());
      fill_frame(now, *s, share);
    } else if (possible || !anyone) {
      break;  // it waits for credit
    } else {
      bool too_large = true;
      for (const auto& [id, other] : sessions_) {
        bool large = false;
        (void)takes(*other, *m, now.boot, large);
        too_large = too_large && large;
      }
      set_aside(m, too_large);
    }
  }
  const bool wanted = now.boot < wanted_until_;
  if (ledger_.ready() > 0 || wanted) {
    for (auto& [id, s] : sessions_) {
      if (s->leaving || (wanted ? s->fits(wanted_size_) : s->free_credit() > 0)) {
        continue;
      }
      s->beat.keep_expecting(now.boot);  // a grant may have been lost on the way
      if (!std::exchange(s->told_backlog, true)) {
        s->beat.send_soon();
      }
    }
  }
}

// The consumer with the largest free share of its credit, of those that take this message and have room for it now.
// `possible`: some consumer takes it, now or later.
sender_session* sender_core::pick(const stored_message& m, time_point now, bool& possible) {
  sender_session* best = nullptr;
  double best_share = 0;
  for (auto& [id, s] : sessions_) {
    bool too_large = false;
    if (s->leaving || s->closing || !takes(*s, m, now, too_large)) {
      continue;
    }
    possible = true;
    if (!s->fits(m.size()) || !links_.ready(id)) {
      continue;
    }
    const double free = double(s->free_credit());
    const double share = free / (free + double(s->tags.size()));
    // Of equals the one that has had less.
    if (best == nullptr || share > best_share || (share == best_share && s->highest_tag < best->highest_tag)) {
      best = s.get();
      best_share = share;
    }
  }
  return best;
}

bool sender_core::takes(const sender_session& s, const stored_message& m, time_point now, bool& too_large) const {
  const bool to_be_buried = m.condemned || now >= m.limit;
  if (to_be_buried && !s.limits.can_bury) {
    return false;
  }
  too_large = m.size() > (to_be_buried ? std::max(s.limits.largest_dead_letter, s.peer.largest_message)
                                       : s.peer.largest_message) ||
              m.size() > s.peer.byte_window;
  return !too_large;
}

void sender_core::fill_frame(instant now, sender_session& s, std::size_t count) {
  deliver f;
  f.session = s.id;
  f.first_tag = s.highest_tag + 1;
  std::uint64_t bytes = 0;
  f.items.reserve(std::min<std::size_t>(count, config_.frame_bytes / (item_overhead + 64)));
  while (f.items.size() < count) {
    auto* m = ledger_.front();
    bool too_large = false;
    if (m == nullptr || !s.fits(m->size()) || !takes(s, *m, now.boot, too_large)) {
      break;
    }
    if (const auto* later = ledger_.find(m->number + 4)) {  // most come in order
      prefetch(later, sizeof *later + 64);
    }
    const auto cost = m->size() + item_overhead;
    if (!f.items.empty() && (bytes + cost > config_.frame_bytes || m->alone_in_frame)) {
      break;
    }
    ledger_.pop_front();
    bytes += cost;
    if (m->delivered_once) {
      ++counters_.redeliveries;
    }
    m->delivered_once = true;
    slot t;
    t.number = m->number;
    t.message = m;
    t.size = m->size();
    t.mark = s.beat.mark();
    const auto limit = s.limits.attempts_max;
    t.alone = !m->condemned && m->suspect && limit && m->attempts + 1 >= *limit;
    s.bytes_sent += t.size;
    m->holder = &s;
    m->tag = ++s.highest_tag;
    describe(now, t, f.items.emplace_back());
    s.unnamed.push_back(s.highest_tag);
    s.tags.insert(s.highest_tag, t);
    if (m->alone_in_frame) {
      break;
    }
  }
  if (!f.items.empty()) {
    frames.push_back({s.to, std::move(f)});
    s.beat.expect_answer(now.boot);
    s.told_backlog = false;
  }
}

// As it is handed over; `item` is fresh.
void sender_core::describe(instant now, const slot& t, deliver_item& item) {
  item.number = t.number;
  item.size = t.size;
  const auto* m = t.message;
  if (m == nullptr) {
    item.flags = delivery_flag::nil;
    return;
  }
  item.flags = std::uint8_t((m->suspect ? delivery_flag::suspect : 0) | (t.alone ? delivery_flag::alone : 0) |
                            (m->may_have_started ? delivery_flag::may_have_started : 0) |
                            (m->condemned ? delivery_flag::condemned : 0));
  item.doc.key = m->key();
  item.doc.headers = m->headers();
  item.doc.payload = m->payload();
  item.doc.attempt = m->attempts + 1;
  item.doc.age = now.boot - m->born;
  if (m->limit != never) {
    item.doc.time_left = std::max(m->limit - now.boot, duration::zero());
  }
  if (m->condemned) {
    item.doc.why = m->why;
    item.doc.record = std::make_shared<const retry_record>(ledger_.record_of(*m, now, final_state::condemned));
  }
}

// A tag sent before the heartbeat that the consumer echoes, and named by none of its heartbeats, is missing. It goes
// out again with the next flush: what is made of a message now could be read after a later input has ended it.
void sender_core::find_missing(sender_session& s, std::uint64_t echo, const consumer_heartbeat& h) {
  sort_unique(s.unnamed);
  std::erase_if(s.unnamed, [&](std::uint64_t tag) {
    auto* t = s.tags.find(tag);
    if (t == nullptr) {
      return true;
    }
    if (h.queued.contains(tag) || h.running.contains(tag) || h.settled.contains(tag) || h.burying.contains(tag)) {
      t->named = true;
      return true;
    }
    if (t->mark <= echo && links_.ready(s.id) && !s.leaving) {
      t->mark = s.beat.mark();
      s.missing.push_back(tag);
    }
    return false;
  });
}

// Under the same tag, or as `nil` if its message has been settled meanwhile: tags close without holes.
void sender_core::resend_missing(instant now, sender_session& s) {
  deliver f;
  std::uint64_t bytes = 0;
  bool alone = false;
  const auto send = [&] {
    if (!f.items.empty()) {
      frames.push_back({s.to, std::move(f)});
      f = {};
      bytes = 0;
    }
  };
  for (auto tag : s.missing) {
    const auto* t = s.tags.find(tag);
    if (t == nullptr) {
      continue;
    }
    const auto cost = t->size + item_overhead;
    const bool was_alone = std::exchange(alone, t->message != nullptr && t->message->alone_in_frame);
    if (f.first_tag + f.items.size() != tag || bytes + cost > config_.frame_bytes || alone || was_alone) {
      send();
    }
    if (f.items.empty()) {
      f.session = s.id;
      f.first_tag = tag;
    }
    describe(now, *t, f.items.emplace_back());
    bytes += cost;
    ++counters_.resent_copies;
  }
  send();
  s.missing.clear();
}

void sender_core::send_heartbeat(instant now, sender_session& s) {
  const auto b = s.beat.next_beat(now.boot);
  sender_heartbeat h;
  h.session = s.id;
  h.number = b.number;
  h.echo = b.echo;
  h.answer_now = b.answer_now;
  h.highest_tag = s.highest_tag;
  h.bytes_sent = s.bytes_sent;
  h.backlog_messages = ledger_.ready();
  h.backlog_bytes = ledger_.ready_bytes();
  if (const auto* m = ledger_.front()) {
    h.next_size = m->size();
  } else if (now.boot < wanted_until_) {
    h.backlog_messages = 1;
    h.backlog_bytes = h.next_size = wanted_size_;
  }
  s.tags.for_each([&](std::uint64_t tag, slot& t) {
    if (t.confirmed) {
      h.confirmed.append(tag);
    }
  });
  h.epoch = config_.epoch;
  h.lowest_held = ledger_.lowest_held();
  frames.push_back({s.to, std::move(h)});
}

}  // namespace onay::core
