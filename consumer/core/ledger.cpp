// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/ledger.hpp"

#include "core/hash.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace onay::core {

namespace {

constexpr std::size_t error_text_max = 1024;

utc_time at_utc(const stored_message& m, time_point t) { return m.born_utc + (t - m.born); }

}  // namespace

std::uint64_t ledger::lowest_held() const { return by_number_.empty() ? last_number_ + 1 : by_number_.lowest(); }

stored_message* ledger::find(std::uint64_t number) {
  auto* e = by_number_.find(number);
  return e == nullptr ? nullptr : e->message.get();
}

std::uint64_t ledger::hash(std::string_view key) const { return hash_bytes(key, seed_); }

stored_message* ledger::find_same_key(const stored_message& m) {
  auto** found = by_key_.find(m.key_hash, [&](stored_message* held) { return held->key() == m.key(); });
  return found == nullptr ? nullptr : *found;
}

retry_record ledger::record_of(const stored_message& m, instant now, final_state state) const {
  retry_record r;
  r.operation_key = std::string(m.key());
  r.attempts = m.attempts;
  if (m.first_attempt != utc_time{}) {
    r.first_attempt = m.first_attempt;
    r.last_attempt = m.last_attempt;
  }
  r.last_error = m.last_error;
  if (m.error_text) {
    r.last_error_text = *m.error_text;
  }
  if (state == final_state::pending) {
    r.next_attempt = m.where == stored_message::place::parked ? at_utc(m, m.due) : now.utc;
  }
  if (m.limit != never) {
    r.deadline = at_utc(m, m.limit);
  }
  r.state = state;
  return r;
}

stored_message* ledger::add(std::unique_ptr<stored_message> m) {
  auto* raw = m.get();
  raw->number = ++last_number_;
  raw->where = stored_message::place::ready;
  by_key_.insert(raw->key_hash, raw);
  by_number_.insert(raw->number, {std::move(m)});
  (fresh_last_ == nullptr ? fresh_first_ : fresh_last_->next) = raw;
  fresh_last_ = raw;
  ++ready_count_;
  ready_bytes_ += raw->size();
  return raw;
}

stored_message* ledger::front() {
  auto* old = again_.top();
  return fresh_first_ == nullptr || (old != nullptr && old->number < fresh_first_->number) ? old : fresh_first_;
}

void ledger::pop_front() {
  auto* m = front();
  assert(m != nullptr);
  if (m == fresh_first_) {
    fresh_first_ = m->next;
    m->next = nullptr;
    if (fresh_first_ == nullptr) {
      fresh_last_ = nullptr;
    }
    --ready_count_;
    ready_bytes_ -= m->size();
  } else {
    take_from_where_it_is(m);
  }
  m->where = stored_message::place::delivered;
}

void ledger::make_ready(stored_message* m) {
  take_from_where_it_is(m);
  m->where = stored_message::place::ready;
  again_.push(m);
  ++ready_count_;
  ready_bytes_ += m->size();
}

void ledger::park(stored_message* m, time_point due) {
  take_from_where_it_is(m);
  m->where = stored_message::place::parked;
  m->due = due;
  parked_.push(m);
}

void ledger::set_overdue_aside(time_point now, std::vector<std::uint64_t>& numbers) {
  const auto overdue = [&](const stored_message* m) { return m->condemned || now >= m->limit; };
  std::vector<stored_message*> late;
  std::copy_if(again_.elements().begin(), again_.elements().end(), std::back_inserter(late), overdue);
  for (auto* m : late) {
    take_from_where_it_is(m);
  }
  auto** link = &fresh_first_;
  fresh_last_ = nullptr;
  while (auto* m = *link) {
    if (overdue(m)) {
      *link = std::exchange(m->next, nullptr);
      --ready_count_;
      ready_bytes_ -= m->size();
      late.push_back(m);
    } else {
      fresh_last_ = m;
      link = &m->next;
    }
  }
  for (auto* m : late) {
    m->where = stored_message::place::delivered;  // nowhere, for a moment
    park(m, never);
    numbers.push_back(m->number);
  }
}

void ledger::condemn(stored_message* m, reason why, error_class cls, std::string_view text) {
  assert(!m->condemned);
  m->condemned = true;
  ++condemned_;
  m->why = why;
  m->suspect = false;
  if (cls != error_class::none) {
    m->last_error = cls;
  }
  if (!text.empty()) {
    m->error_text = std::make_unique<std::string>(text.substr(0, error_text_max));
  }
}

void ledger::bury(stored_message* m) {
  take_from_where_it_is(m);
  m->where = stored_message::place::burying;
}

void ledger::settle(stored_message* m) {
  assert(m->where != stored_message::place::settled);
  take_from_where_it_is(m);
  m->where = stored_message::place::settled;
  by_key_.erase(m->key_hash, [&](stored_message* other) { return other == m; });
  if (m->condemned) {
    --condemned_;
  }
}

void ledger::remove(stored_message* m) {
  assert(m->where == stored_message::place::settled);
  auto e = by_number_.take(m->number);
  if (removed.size() < removed_max && m->size() <= removed_bytes_max) {
    removed.push_back(std::move(e.message));
  }
}

void ledger::handle_time(time_point now) {
  while (auto* m = parked_.top()) {
    if (m->due > now) {
      return;
    }
    make_ready(m);
  }
}

time_point ledger::next_due() const { return parked_.empty() ? never : parked_.top()->due; }

void ledger::note_attempt(stored_message& m, utc_time at) {
  ++m.attempts;
  if (m.first_attempt == utc_time{}) {
    m.first_attempt = at;
  }
  m.last_attempt = at;
}

void ledger::take_from_where_it_is(stored_message* m) {
  switch (m->where) {
    case stored_message::place::ready:
      // Only messages that came back can be taken out of turn: a fresh one has never left, so nobody can settle it.
      assert((m->heap_index != indexed_heap<stored_message, older>::nowhere));
      again_.remove(m);
      --ready_count_;
      ready_bytes_ -= m->size();
      break;
    case stored_message::place::parked:
      parked_.remove(m);
      break;
    case stored_message::place::delivered:
    case stored_message::place::burying:
    case stored_message::place::settled:
      break;
  }
}

}  // namespace onay::core
