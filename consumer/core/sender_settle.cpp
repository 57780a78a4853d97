// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What a settlement means to the sender.
#include "core/sender_core.hpp"

#include <algorithm>
#include <cassert>

namespace onay::core {

namespace {

// A consumer's word is kept within reason. A condemned message has no limit that would end a long wait.
constexpr duration delay_longest = std::chrono::hours(24);
constexpr duration condemned_delay_longest = std::chrono::minutes(1);

}  // namespace

void sender_core::handle(instant now, sender_session& s, const settle& f) {
  settled answer;
  answer.session = s.id;
  answer.number = f.number;
  apply_ranges(now, s, f.accepted, answer.accepted);
  for (const auto& item : f.others) {
    if (item.tag == 0 || item.tag > s.highest_tag) {
      ++counters_.bad_frames;  // never sent: nothing that could be settled
      continue;
    }
    answer.others.push_back(apply(now, s, item));
  }
  for (const auto& item : f.late) {
    bool deferred = false;
    auto result = apply_late(now, s, item, deferred);
    if (deferred) {
      auto [first, last] = deferred_.equal_range(item.number);
      auto same = std::find_if(first, last, [&](const auto& d) { return d.second.session == s.id; });
      if (same == last) {
        deferred_.emplace(item.number, deferred_answer{s.id, f.number, result});
      } else {
        same->second.settle_number = f.number;  // repeated
      }
    } else {
      answer.late.push_back(result);
    }
  }
  for (const auto& r : f.started.list()) {
    s.tags.for_each_in(r.first, r.last, [](std::uint64_t, slot& t) { t.started = true; });
  }
  confirm_starts(now, s, f.asked, &answer.confirmed);
  // A raise that was made before the newest heartbeat that we read may have been taken back by that.
  if (f.credit_heartbeat >= s.beat.seen()) {
    s.credit_tag = std::max(s.credit_tag, f.credit_tag);
    s.credit_bytes = std::max(s.credit_bytes, f.credit_bytes);
  }
  if (!answer.accepted.empty() || !answer.others.empty() || !answer.late.empty() || !answer.confirmed.empty()) {
    s.answers.push_back(std::move(answer));
  }
}

void sender_core::apply_ranges(instant now, sender_session& s, const ranges& accepted, ranges& answer) {
  for (const auto& r : accepted.list()) {
    if (r.first == 0 || r.last > s.highest_tag) {
      ++counters_.bad_frames;
      continue;
    }
    // A tag that isn't open any more was settled the first time that this was said.
    s.tags.for_each_in(r.first, r.last, [&](std::uint64_t tag, slot& open) {
      if (const auto* ahead = s.tags.find(tag + 12); ahead != nullptr && ahead->message != nullptr) {
        prefetch(ahead->message, sizeof *ahead->message);
      }
      if (const auto* ahead = s.tags.find(tag + 6); ahead != nullptr && ahead->message != nullptr) {
        ledger_.prefetch_settling(*ahead->message);
      }
      if (open.message != nullptr) {
        if (open.message->condemned) {
          ++counters_.stale_verdicts;
          return;  // no accept settles it
        }
        finish_accepted(now, open.message, {});
      }
      close_tag(s, tag, open);
    });
    answer.append(r);
  }
}

settled_item sender_core::apply(instant now, sender_session& s, const settlement_item& item) {
  settled_item answer{item.tag, item.kind, verdict::applied, {}};
  auto* found = s.tags.find(item.tag);
  if (found == nullptr) {
    return answer;  // repeated: what it said was done the first time
  }
  const auto t = *found;
  auto* m = t.message;
  if (m == nullptr) {
    answer.verdict = item.kind == settlement::accept ? verdict::late : verdict::stale;
    close_tag(s, item.tag, t);
    return answer;
  }
  const auto stale = [&] {
    ++counters_.stale_verdicts;
    answer.verdict = verdict::stale;
    return answer;
  };
  // Suspicion ends with a settlement after a start, and the start of a retry or a reject is counted.
  const auto note_start = [&] {
    if (item.had_started) {
      ledger::note_attempt(*m, now.utc);
      m->suspect = false;
      m->may_have_started = false;
    }
  };
  switch (item.kind) {
    case settlement::accept:
      if (m->condemned) {
        return stale();
      }
      finish_accepted(now, m, item.result);
      close_tag(s, item.tag, t);
      return answer;
    case settlement::retry: {
      if (m->condemned) {
        return stale();
      }
      note_start();
      m->last_error = item.cls;
      m->error_text = item.text.empty() ? nullptr : std::make_unique<std::string>(item.text);
      close_tag(s, item.tag, t);
      give_back(now, m, item.delay);
      return answer;
    }
    case settlement::release:
      if (item.had_started && !m->condemned) {
        m->suspect = false;
        const auto limit = s.limits.attempts_max;
        if (limit && ++m->uncounted > 2 * std::uint64_t(*limit)) {
          ledger::note_attempt(*m, now.utc);  // released for ever must not mean tried for ever
        }
      }
      close_tag(s, item.tag, t);
      give_back(now, m, item.delay);
      return answer;
    case settlement::reject:
      if (!m->condemned) {
        note_start();
        ledger_.condemn(m, item.why, item.cls, item.text);
      }
      answer.record = ledger_.record_of(*m, now, final_state::condemned);
      return answer;
    case settlement::buried:
      if (!m->condemned) {
        return stale();
      }
      finish_buried(now, m);
      close_tag(s, item.tag, t);
      return answer;
  }
  return answer;
}

settled_late sender_core::apply_late(instant now, sender_session& s, const late_item& item, bool& deferred) {
  settled_late answer{item.epoch, item.number, item.kind, verdict::stale};
  if (item.epoch != config_.epoch) {
    ++counters_.stale_verdicts;
    return answer;
  }
  auto* m = ledger_.find(item.number);
  if (m != nullptr && !m->delivered_once) {
    ++counters_.bad_frames;  // never handed to anybody: nothing that could be settled
    return answer;
  }
  const auto settle_now = [&](auto finish_it) {
    answer.verdict = verdict::late;
    if (m != nullptr && m->where != stored_message::place::settled) {
      ++counters_.late_accepts;
      auto* holder = m->holder;
      const auto tag = m->tag;
      finish_it();
      if (holder != nullptr) {
        // Somebody else holds a copy: the number stays held, and the answer waits, until that tag closes. Whoever
        // settled late may forget its record only then.
        if (auto* t = holder->tags.find(tag)) {
          t->message = nullptr;
          send_nil(now, *holder, tag, *t);
        }
      }
    }
    deferred = m != nullptr && ledger_.find(item.number) != nullptr;
  };
  switch (item.kind) {
    case settlement::accept:
      if (m != nullptr && m->condemned && m->where != stored_message::place::settled) {
        break;
      }
      settle_now([&] { finish_accepted(now, m, item.result); });
      return answer;
    case settlement::buried:
      if (m != nullptr && !m->condemned && m->where != stored_message::place::settled) {
        break;
      }
      settle_now([&] { finish_buried(now, m); });
      return answer;
    case settlement::release: {
      auto it = lost_starts_.find(item.number);
      if (m == nullptr || item.had_started || it == lost_starts_.end() || it->second.instance != s.peer.instance) {
        break;
      }
      if (it->second.charged && m->attempts > 0) {
        --m->attempts;
      }
      m->may_have_started = false;
      lost_starts_.erase(it);
      answer.verdict = verdict::late;
      return answer;
    }
    case settlement::retry:
    case settlement::reject:
      break;
  }
  ++counters_.stale_verdicts;
  return answer;
}

void sender_core::confirm_starts(instant now, sender_session& s, const ranges& asked, ranges* confirmed) {
  for (const auto& r : asked.list()) {
    s.tags.for_each_in(r.first, r.last, [&](std::uint64_t tag, slot& t) {
      if (t.message == nullptr) {
        send_nil(now, s, tag, t);  // settled elsewhere: it won't start
        return;
      }
      if (t.message->condemned) {
        return;
      }
      t.confirmed = true;
      if (confirmed != nullptr) {
        confirmed->append(tag);
      }
    });
  }
}

void sender_core::finish_accepted(instant, stored_message* m, std::string_view result) {
  ++counters_.accepted;
  ++(m->attempts == 0 ? counters_.first_attempt_successes : counters_.successes_after_retry);
  auto& f = finish(m);
  f.state = final_state::accepted;
  f.result = result;
}

void sender_core::finish_buried(instant now, stored_message* m) {
  ++counters_.dead_lettered;
  const auto why = m->why;
  auto record = std::make_unique<retry_record>(ledger_.record_of(*m, now, final_state::dead_lettered));
  auto& f = finish(m);
  f.state = final_state::dead_lettered;
  f.why = why;
  f.record = std::move(record);
}

// Settles it, and perhaps forgets it; what its waiters are told is the caller's to say.
finished& sender_core::finish(stored_message* m) {
  auto& f = finished_messages.emplace_back();
  f.receipt = std::move(m->receipt);
  f.joined = std::move(m->joined);
  f.size = m->size();
  if (!lost_starts_.empty()) {
    lost_starts_.erase(m->number);
  }
  const bool set_aside = m->where == stored_message::place::parked && m->due == never;
  if (set_aside) {
    std::erase(overdue_, m->number);
    std::erase(undeliverable_, m->number);
  }
  ledger_.settle(m);
  if (m->holder == nullptr) {
    ledger_.remove(m);
  }
  return f;
}

// The tag is done with; so is the number, if its message is settled.
void sender_core::close_tag(sender_session& s, std::uint64_t tag, const slot& t) {
  const auto number = t.number;
  auto* m = t.message != nullptr ? t.message : ledger_.find(number);
  s.tags.erase(tag);  // `t` may be gone
  if (m == nullptr || m->holder != &s || m->tag != tag) {
    return;
  }
  m->holder = nullptr;
  m->tag = 0;
  if (m->where != stored_message::place::settled) {
    return;
  }
  ledger_.remove(m);
  if (deferred_.empty()) {
    return;
  }
  auto [first, last] = deferred_.equal_range(number);
  for (auto it = first; it != last; ++it) {
    if (auto to = sessions_.find(it->second.session); to != sessions_.end()) {
      settled answer;
      answer.session = to->first;
      answer.number = it->second.settle_number;
      answer.late.push_back(it->second.answer);
      to->second->answers.push_back(std::move(answer));
    }
  }
  deferred_.erase(first, last);
}

// The message of this tag has been settled by somebody else: its holder may let it go.
void sender_core::send_nil(instant now, sender_session& s, std::uint64_t tag, const slot& t) {
  deliver f;
  f.session = s.id;
  f.first_tag = tag;
  describe(now, t, f.items.emplace_back());
  frames.push_back({s.to, std::move(f)});
}

// Due again after `delay`, but never parked past its limit: what is too old goes out to be condemned.
void sender_core::give_back(instant now, stored_message* m, duration delay) {
  const auto due = after(
      now.boot, std::clamp<duration>(delay, duration::zero(), m->condemned ? condemned_delay_longest : delay_longest));
  if (due <= now.boot) {
    ledger_.make_ready(m);
  } else {
    ledger_.park(m, m->condemned ? due : std::min(due, std::max(m->limit, now.boot)));
  }
}

}  // namespace onay::core
