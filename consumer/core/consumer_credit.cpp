// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// How much the senders may hand over, and what goes out at the end of a step.
//
// One pool of places, in messages and bytes. A place is used from the moment that it is granted until its delivery is
// settled, so what a consumer holds never exceeds the pool, whatever a sender does. Unused grants also never exceed the
// inbox's free records: an unconfirmed record can't make room.
#include "core/consumer_core.hpp"

#include <algorithm>
#include <cassert>

namespace onay::core {

namespace {

constexpr std::uint64_t open_tags_max = 65'536;       // of a session: as many ranges as a frame's lists may have
constexpr std::size_t settlements_per_frame = 4'096;  // what always fits, and so does its answer
constexpr std::size_t settle_bytes = 1U << 20U;       // results and texts of a frame; at least one settlement fits

// Granted, or held.
std::uint64_t places_of(const consumer_session& s) { return s.counted_tag - s.returned; }
std::uint64_t bytes_of(const consumer_session& s) { return s.counted_bytes - s.returned_bytes; }

// Each session's small part of the pool, kept free for it: a backlog is only a claim, and a sender that claims and
// never sends would otherwise end up with every place.
class reserve {
 public:
  reserve(std::uint64_t pool, std::size_t sessions) : least_(pool / (4 * std::max<std::uint64_t>(sessions, 1))) {}
  void add(std::uint64_t used) { kept_ += lack(used); }
  void remove(std::uint64_t used) { kept_ -= lack(used); }
  // Of `free`, what isn't kept.
  [[nodiscard]] std::uint64_t spare(std::uint64_t free) const { return free - std::min(free, kept_); }
  [[nodiscard]] std::uint64_t least() const { return least_; }

 private:
  [[nodiscard]] std::uint64_t lack(std::uint64_t used) const { return least_ - std::min(used, least_); }
  std::uint64_t least_;
  std::uint64_t kept_ = 0;
};

bool lacks_bytes(const consumer_session& s) {
  return s.backlog > 0 && s.next_size > s.counted_bytes - std::min(s.counted_bytes, s.bytes_seen);
}

}  // namespace

// How much more this sender may be granted for itself: a heartbeat must be able to name all its open tags (they are
// open until their settlement is confirmed), and one that confirms nothing must not end up with every record of the
// inbox.
std::uint64_t consumer_core::own_room(const consumer_session& s) const {
  const auto left = [](std::uint64_t most, std::uint64_t used) { return most - std::min(most, used); };
  const auto share = (std::uint64_t{config_.inbox_max} + 1) / 2;
  return std::min(left(open_tags_max, s.tags.size() + s.unused()),
                  left(share, inbox_.pins_of(s.terms.sender_id) + places_of(s)));
}

void consumer_core::grant() {
  if (drain_ != drain_state::none || (stuck() >= config_.concurrency && config_.concurrency > 0)) {
    return;
  }
  std::uint64_t used = 0, used_bytes = 0, unclaimed = 0;
  reserve kept(config_.credit_max, sessions_.size());
  reserve kept_bytes(config_.credit_bytes_max, sessions_.size());
  std::vector<consumer_session*> all, needy;
  for (auto& [id, s] : sessions_) {
    used += places_of(*s);
    used_bytes += bytes_of(*s);
    kept.add(places_of(*s));
    kept_bytes.add(bytes_of(*s));
    unclaimed += s->unused() + s->missing.value_count();
    if (s->lowered_by == 0) {
      all.push_back(s.get());
      if ((s->backlog > s->unused() || lacks_bytes(*s)) && own_room(*s) > 0) {
        needy.push_back(s.get());
      }
    }
  }
  std::uint64_t free = config_.credit_max - std::min<std::uint64_t>(used, config_.credit_max);
  free = std::min<std::uint64_t>(free, inbox_.free() - std::min<std::uint64_t>(unclaimed, inbox_.free()));
  std::uint64_t free_bytes = config_.credit_bytes_max - std::min(used_bytes, config_.credit_bytes_max);

  // Whoever has a backlog goes first; what nobody needs is granted all the same, so that the next message finds credit.
  auto& turn = needy.empty() ? all : needy;
  if (turn.empty()) {
    return;
  }
  std::rotate(turn.begin(), turn.begin() + std::ptrdiff_t(grant_turn_ % turn.size()), turn.end());
  const consumer_session* hungry = nullptr;
  for (std::size_t i = 0; i < turn.size(); ++i) {
    auto& s = *turn[i];
    const auto left = turn.size() - i;
    kept.remove(places_of(s));
    kept_bytes.remove(bytes_of(s));
    const auto room = own_room(s);
    const auto messages = std::min({free / left, kept.spare(free), room});
    const auto unused_bytes = s.counted_bytes - std::min(s.counted_bytes, s.bytes_seen);
    const auto wanted = s.next_size > unused_bytes ? s.next_size - unused_bytes : 0;
    // A large message may need more than is spare.
    const auto bytes =
        std::max(std::min(free_bytes / left, kept_bytes.spare(free_bytes)), std::min(free_bytes, wanted));
    if (hungry == nullptr && s.backlog > 0 && room > 0 && ((messages == 0 && s.unused() == 0) || bytes < wanted)) {
      hungry = &s;
    }
    grant_to(s, messages, bytes);
    kept.add(places_of(s));
    kept_bytes.add(bytes_of(s));
    free -= messages;
    free_bytes -= bytes;
    grant_turn_ += messages > 0 ? 1 : 0;
  }
  // Idle grants go back only when somebody needs them; so do those that are too small for what they are meant for, or
  // two senders could each hold half of what either of them needs; and those from before the others came, which leave
  // them nothing.
  if (hungry != nullptr) {
    const auto rest = sessions_.size() - 1;
    for (auto* s : all) {
      const bool too_many = places_of(*s) > config_.credit_max - rest * kept.least() ||
                            bytes_of(*s) > config_.credit_bytes_max - rest * kept_bytes.least();
      if (s != hungry && (s->backlog == 0 || lacks_bytes(*s) || (too_many && s->unused() > 0))) {
        withdraw(*s);
      }
    }
  }
}

void consumer_core::grant_to(consumer_session& s, std::uint64_t messages, std::uint64_t bytes) {
  s.credit_tag += messages;
  s.credit_bytes += bytes;
  s.counted_tag = s.credit_tag;
  s.counted_bytes = s.credit_bytes;
}

// No more than what has come: it counts until the sender has echoed the heartbeat that says so.
void consumer_core::withdraw(consumer_session& s) {
  if (s.credit_tag > s.highest_seen || s.credit_bytes > s.bytes_seen) {
    s.credit_tag = s.highest_seen;
    s.credit_bytes = s.bytes_seen;
    s.lowered_by = s.beat.mark();
    s.beat.send_soon();
  }
}

void consumer_core::give_place_back(consumer_session& s, std::uint64_t size) {
  ++s.returned;
  s.returned_bytes += size;
}

bool consumer_core::has_news(const consumer_session& s) const {
  if (!s.accepted_now.empty() || !s.others_now.empty() || !s.started_now.empty() || s.late_now || s.ask_now) {
    return true;
  }
  // A raise alone is told when it is worth a frame: an eighth of the pool, or all that the sender has.
  if (s.beat.sent() == 0 || s.lowered_by != 0) {
    return false;  // credit is told by the heartbeat that is due: the first one, or the one that lowers it
  }
  const auto raise = s.credit_tag - std::min(s.credit_tag, s.told_tag);
  const auto raise_bytes = s.credit_bytes - std::min(s.credit_bytes, s.told_bytes);
  const auto told_unused = s.told_tag - std::min(s.told_tag, s.highest_seen);
  return (raise > 0 && (raise >= config_.credit_max / 8 || told_unused == 0)) ||
         raise_bytes >= std::max<std::uint64_t>(config_.credit_bytes_max / 8, 1);
}

void consumer_core::flush(instant now) {
  drain_step(now);
  pump(now);
  grant();
  for (auto& [id, s] : sessions_) {
    if (s->parting || !links_.ready(id)) {
      continue;
    }
    // Lowered credit goes out before what is handed back, or that would come again at once.
    if (s->beat.sent() > 0 && s->lowered_by > s->beat.sent() && s->beat.due(now.boot)) {
      send_heartbeat(now, *s);
    }
    // Late settlements go out before the first heartbeat grants credit: what they take back must not be handed over
    // first.
    while ((s->beat.sent() > 0 || s->late_now) && has_news(*s)) {
      send_settle(now, *s);
    }
    if (s->beat.due(now.boot)) {
      send_heartbeat(now, *s);
    }
  }
}

void consumer_core::send_settle(instant now, consumer_session& s) {
  settle f;
  f.session = s.id;
  f.number = ++s.settle_number;
  const bool expects = !s.accepted_now.empty() || !s.others_now.empty() || s.late_now || s.ask_now;
  sort_unique(s.accepted_now);
  f.accepted = ranges::from(s.accepted_now);
  sort_unique(s.others_now);
  std::size_t count = 0, bytes = 0;
  for (; count < s.others_now.size() && count < settlements_per_frame && bytes < settle_bytes; ++count) {
    const auto tag = s.others_now[count];
    if (auto* t = s.tags.find(tag); t != nullptr && t->settled) {
      f.others.push_back(item_of(tag, *t));
      bytes += f.others.back().result.size() + f.others.back().text.size();
    }
  }
  bool more_late = false;
  if (s.late_now) {
    for (auto& l : s.late) {
      if (l.mark == 0 && (f.others.size() + f.late.size() >= settlements_per_frame || bytes >= settle_bytes)) {
        more_late = true;
        break;
      }
      if (l.mark == 0) {
        l.mark = s.beat.mark();
        f.late.push_back(l.item);
        f.late.back().result = l.result;
        bytes += l.result.size();
      }
    }
  }
  std::sort(s.started_now.begin(), s.started_now.end());
  f.started = ranges::from(s.started_now);
  if (s.ask_now) {
    auto asking = s.asking;
    f.asked = ranges::from(asking);
  }
  f.credit_tag = s.credit_tag;
  f.credit_bytes = s.credit_bytes;
  f.credit_heartbeat = s.beat.sent();
  if (s.lowered_by == 0) {
    s.told_tag = s.credit_tag;
    s.told_bytes = s.credit_bytes;
  }
  s.accepted_now.clear();
  s.others_now.erase(s.others_now.begin(), s.others_now.begin() + std::ptrdiff_t(count));
  s.started_now.clear();
  s.late_now = more_late;
  s.ask_now = false;
  frames.push_back({s.to, std::move(f)});
  if (expects) {
    s.beat.expect_answer(now.boot);
  }
}

void consumer_core::send_heartbeat(instant now, consumer_session& s) {
  const auto b = s.beat.next_beat(now.boot);
  consumer_heartbeat h;
  h.session = s.id;
  h.number = b.number;
  h.echo = b.echo;
  h.answer_now = b.answer_now;
  s.tags.for_each([&](std::uint64_t tag, slot& t) {
    if (t.settled) {
      h.settled.append(tag);
    } else if (t.delivery != nullptr && t.delivery->at == held::stage::running) {
      h.running.append(tag);
    } else if (t.delivery != nullptr && t.delivery->at == held::stage::burying) {
      h.burying.append(tag);
    } else {
      h.queued.append(tag);
    }
  });
  auto asking = s.asking;
  h.asked = ranges::from(asking);
  h.credit_tag = s.told_tag = s.credit_tag;
  h.credit_bytes = s.told_bytes = s.credit_bytes;
  frames.push_back({s.to, std::move(h)});
}

time_point consumer_core::next_deadline() {
  auto next = links_.next_deadline();
  for (auto& [id, s] : sessions_) {
    next = std::min({next, s->beat.lease_end(), links_.ready(id) ? s->beat.next_deadline() : never});
  }
  for (const auto* d : running_) {
    if (!d->timed_out) {
      next = std::min(next, d->timeout_at);
    } else if (config_.abandon_after && d->at == held::stage::running) {
      next = std::min(next, after(d->timeout_at, *config_.abandon_after));
    }
  }
  for (const auto* d : waiting_) {
    next = std::min(next, after(d->since, d->session->terms.lease));
  }
  if (alone_since_ != never && stuck() > 0) {
    next = std::min(next, after(alone_since_, config_.attempt_timeout));
  }
  for (const auto& a : away_) {
    next = std::min(next, after(a.since, pin_age()));
  }
  return drain_ == drain_state::draining ? std::min(next, drain_deadline_) : next;
}

}  // namespace onay::core
