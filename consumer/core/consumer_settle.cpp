// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Settlements on their way to the sender, its answers, and burying.
#include "core/consumer_core.hpp"

#include <algorithm>
#include <cassert>
#include <set>
#include <tuple>

namespace onay::core {

namespace {

// What a dead letter adds to the message: envelope and retry record.
constexpr std::uint64_t dead_letter_overhead = 8192;
constexpr backoff_policy burial_backoff{std::chrono::milliseconds(100), std::chrono::seconds(1), false};

}  // namespace

void consumer_core::drop_claim(held* d) {
  if (d->record != inbox::none) {
    inbox_.abandon(d->record);
    active_[d->record] = nullptr;
    d->record = inbox::none;
  }
}

// The key is recorded and pinned already.
void consumer_core::settle_accept(instant now, held* d, std::string_view result) {
  auto* s = d->session;
  if (s != nullptr) {
    std::unique_ptr<extra> e;
    if (!result.empty()) {
      e = std::make_unique<extra>();
      e->result = std::string(result);
      e->had_started = true;
    }
    mark_settled(now, *s, d->tag, *s->tags.find(d->tag), settlement::accept, std::move(e));
  } else if (auto* other = session_with(d->id.sender)) {
    add_late(*other, {d->id.epoch, d->id.number, settlement::accept, true, {}}, result);
  }  // else the pin is told when that sender comes back
  free_held(d);
}

void consumer_core::settle_with(instant now, held* d, settlement kind, extra e) {
  counters_.released += kind == settlement::release ? 1 : 0;
  drop_claim(d);
  wake_waiters(now, d, false, {}, e.delay);
  if (auto* s = d->session) {
    mark_settled(now, *s, d->tag, *s->tags.find(d->tag), kind, std::make_unique<extra>(std::move(e)));
  }  // else: stale by now, the sender has taken the message back
  free_held(d);
}

void consumer_core::mark_settled(instant, consumer_session& s, std::uint64_t tag, slot& t, settlement kind,
                                 std::unique_ptr<extra> e) {
  t.settled = true;
  t.kind = kind;
  t.mark = s.beat.mark();
  t.extra = std::move(e);
  if (kind != settlement::reject) {
    t.delivery = nullptr;
  }
  (kind == settlement::accept && !t.extra ? s.accepted_now : s.others_now).push_back(tag);
  s.unconfirmed.push_back(tag);
  if (kind == settlement::accept) {
    give_place_back(s, t.size);  // the inbox bounds what is unconfirmed; the rest keeps its place until it is confirmed
  }
}

void consumer_core::reject(instant now, held* d, reason why, error_class cls, std::string text, bool had_started) {
  ++counters_.rejected;
  drop_claim(d);
  wake_waiters(now, d, false, {}, duration::zero());
  auto* s = d->session;
  if (s == nullptr) {
    free_held(d);
    return;
  }
  d->at = held::stage::rejecting;
  d->why = why;
  auto e = std::make_unique<extra>();
  e->cls = cls;
  e->why = why;
  e->text = std::move(text);
  e->had_started = had_started;
  mark_settled(now, *s, d->tag, *s->tags.find(d->tag), settlement::reject, std::move(e));
}

// The sender has condemned it and given its record: to the collector, if that has room, else back until it has.
void consumer_core::bury(instant now, held* d) {
  const auto size = d->key.size() + d->headers.size() + d->payload.size() + dead_letter_overhead;
  if (config_.bury == burial::discard) {
    ++counters_.buried;
    settle_with(now, d, settlement::buried, {});
    return;
  }
  if (config_.bury == burial::dead_letter_link && burying_ < config_.dead_letters_max && burial_room_ > 0 &&
      burial_room_bytes_ >= size && drain_ == drain_state::none) {
    --burial_room_;
    burial_room_bytes_ -= size;
    ++burying_;
    d->at = held::stage::burying;
    if (!d->retries) {
      d->retries = std::make_unique<retry_record>();
      d->retries->operation_key = std::string(d->key);
    }
    burials.push_back(d);
    return;
  }
  burial_wish_ = size;
  // One growing backoff for the link, not one a message: they all come back at the same next try.
  if (now.boot >= burial_retry_at_) {
    burial_retry_at_ = after(now.boot, backoff_bound(burial_backoff, ++burial_failures_));
  }
  extra e;
  e.delay = burial_retry_at_ - now.boot;
  settle_with(now, d, settlement::release, std::move(e));
}

void consumer_core::handle_buried(instant now, held* d) {
  --burying_;
  burial_failures_ = 0;
  ++counters_.buried;
  if (d->session != nullptr) {
    settle_with(now, d, settlement::buried, {});
    return;
  }
  late_item item{d->id.epoch, d->id.number, settlement::buried, false, {}};
  if (auto* s = session_with(d->id.sender)) {
    add_late(*s, item, {});
  } else {
    homeless_late_[d->id.sender].push_back({item, {}, 0});
    note_away(now, d->id.sender);
  }
  free_held(d);
}

void consumer_core::handle(instant now, consumer_session& s, const settled& f) {
  for (const auto& r : f.accepted.list()) {
    s.tags.for_each_in(r.first, r.last, [&](std::uint64_t tag, const slot& t) {
      if (t.settled && t.kind == settlement::accept) {
        inbox_.confirm(s.terms.sender_id, s.terms.epoch, t.number);
        s.tags.erase(tag);
      }
    });
  }
  for (const auto& item : f.others) {
    confirm_tag(now, s, item.tag, item.kind, item.verdict, item.record);
  }
  std::set<std::tuple<std::uint64_t, std::uint64_t, settlement>> answered;
  for (const auto& l : f.late) {
    if (l.epoch == s.terms.epoch && l.kind == settlement::accept) {
      inbox_.confirm(s.terms.sender_id, l.epoch, l.number);
    }
    answered.insert({l.epoch, l.number, l.kind});
  }
  if (!answered.empty()) {
    std::erase_if(s.late, [&](const auto& mine) {
      return answered.contains({mine.item.epoch, mine.item.number, mine.item.kind});
    });
  }
  confirm_starts(s, f.confirmed);
}

void consumer_core::confirm_tag(instant now, consumer_session& s, std::uint64_t tag, settlement kind, core::verdict v,
                                const std::optional<retry_record>& record) {
  auto* t = s.tags.find(tag);
  if (t == nullptr || !t->settled || t->kind != kind) {
    return;  // confirmed before, or the answer to an earlier settlement of this tag
  }
  if (kind == settlement::accept) {
    inbox_.confirm(s.terms.sender_id, s.terms.epoch, t->number);
  } else if (kind == settlement::reject) {
    auto* d = t->delivery;
    if (v == verdict::applied && record) {
      t->settled = false;
      t->extra.reset();
      d->retries = std::make_unique<retry_record>(*record);
      bury(now, d);
      return;
    }
    free_held(d);  // the sender has settled it otherwise
  }
  if (kind != settlement::accept) {
    give_place_back(s, t->size);
  }
  s.tags.erase(tag);
}

// The sender has seen a heartbeat that was sent after these settlements and hasn't answered them: they are lost, or
// their answers are. Saying it again is harmless.
void consumer_core::repeat_unconfirmed(instant now, consumer_session& s) {
  sort_unique(s.unconfirmed);
  std::erase_if(s.unconfirmed, [&](std::uint64_t tag) {
    auto* t = s.tags.find(tag);
    if (t == nullptr || !t->settled) {
      return true;
    }
    if (t->mark <= s.beat.echoed()) {
      t->mark = s.beat.mark();
      (t->kind == settlement::accept && !t->extra ? s.accepted_now : s.others_now).push_back(tag);
    }
    return false;
  });
  for (auto& l : s.late) {
    if (l.mark != 0 && l.mark <= s.beat.echoed()) {
      l.mark = 0;
      s.late_now = true;
    }
  }
  s.ask_now = s.ask_now || !s.asking.empty();
  s.beat.stop_expecting();
  if (!s.unconfirmed.empty() || !s.late.empty() || !s.asking.empty()) {
    s.beat.keep_expecting(now.boot);
  }
}

void consumer_core::add_late(consumer_session& s, late_item item, std::string_view result) {
  s.late.push_back({item, std::string(result), 0});
  s.late_now = true;
}

duration consumer_core::release_delay() {
  return std::max<duration>(std::chrono::milliseconds(10), backoff_delay(config_.retry.backoff, 1, draw_()));
}

settlement_item consumer_core::item_of(std::uint64_t tag, const slot& t) {
  settlement_item item;
  item.tag = tag;
  item.kind = t.kind;
  if (t.extra) {
    item.delay = t.extra->delay;
    item.cls = t.extra->cls;
    item.why = t.extra->why;
    item.text = t.extra->text;
    item.had_started = t.extra->had_started;
    item.result = t.extra->result;
  }
  return item;
}

}  // namespace onay::core
