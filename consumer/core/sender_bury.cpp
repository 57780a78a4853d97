// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Messages that no connected consumer can bury: past their limit while nobody is there who could, or larger than
// everybody takes. Without a dead-letter endpoint of the sender's own they wait, and are counted.
#include "core/sender_core.hpp"

#include <algorithm>

namespace onay::core {

namespace {

constexpr std::uint64_t dead_letter_overhead = 8192;

}  // namespace

bool sender_core::anyone_buries() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& s) { return !s.second->leaving && s.second->limits.can_bury; });
}

// No connected consumer can take it: out of the others' way, until somebody new connects.
void sender_core::set_aside(stored_message* m, bool too_large) {
  ledger_.pop_front();
  ledger_.park(m, never);
  (too_large ? undeliverable_ : overdue_).push_back(m->number);
}

void sender_core::take_back_aside() {
  for (auto* list : {&overdue_, &undeliverable_}) {
    for (auto number : std::exchange(*list, {})) {
      if (auto* m = ledger_.find(number); m != nullptr && m->where == stored_message::place::parked) {
        ledger_.make_ready(m);
      }
    }
  }
}

// While nobody is there who could bury it, what is past its limit leaves the queue and is counted as overdue. A scan:
// not before the earliest limit, and no oftener than a heartbeat.
void sender_core::set_overdue_aside(instant now) {
  if (anyone_buries()) {
    next_limit_scan_ = earliest_limit_ = {};
    return;
  }
  if (now.boot < earliest_limit_ || now.boot < next_limit_scan_) {
    return;
  }
  ledger_.set_overdue_aside(now.boot, overdue_);
  earliest_limit_ = never;
  ledger_.for_each([&](const stored_message& m) {
    const bool aside = m.where == stored_message::place::parked && m.due == never;
    if (!aside && m.where != stored_message::place::burying && m.where != stored_message::place::settled) {
      earliest_limit_ = std::min(earliest_limit_, m.condemned ? now.boot : m.limit);
    }
  });
  next_limit_scan_ = after(now.boot, config_.heartbeat);
}

void sender_core::bury_what_nobody_can(instant now) {
  if (!config_.buries_itself) {
    return;
  }
  const auto bury = [&](std::vector<std::uint64_t>& numbers, reason why) {
    std::size_t taken = 0;
    for (; taken < numbers.size(); ++taken) {
      auto* m = ledger_.find(numbers[taken]);
      const auto size = m->size() + dead_letter_overhead;
      if (burial_room_ == 0 || burial_room_bytes_ < size) {
        break;  // in order: a large one that waits for room isn't passed for ever by small ones
      }
      --burial_room_;
      burial_room_bytes_ -= size;
      if (!m->condemned) {
        ledger_.condemn(m, why, error_class::none, {});
      }
      ledger_.bury(m);
      burials.push_back({{config_.sender_id, config_.epoch, m->number},
                         m,
                         m->why,
                         ledger_.record_of(*m, now, final_state::condemned)});
    }
    numbers.erase(numbers.begin(), numbers.begin() + std::ptrdiff_t(taken));
  };
  if (!anyone_buries()) {
    bury(overdue_, reason::too_old);
  }
  bury(undeliverable_, reason::too_large);
}

std::uint64_t sender_core::burial_wish() {
  const bool someone = anyone_buries();
  if (!config_.buries_itself || (undeliverable_.empty() && (overdue_.empty() || someone))) {
    return 0;
  }
  const auto* m = ledger_.find(undeliverable_.empty() ? overdue_.front() : undeliverable_.front());
  const auto size = m->size() + dead_letter_overhead;
  return burial_room_ > 0 && burial_room_bytes_ >= size ? 0 : size;
}

void sender_core::handle_buried(instant now, std::uint64_t number) {
  auto* m = ledger_.find(number);
  if (m != nullptr && m->where == stored_message::place::burying) {
    finish_buried(now, m);
  }
}

}  // namespace onay::core
