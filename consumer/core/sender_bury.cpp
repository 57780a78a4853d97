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
  next_burial_scan_ = {};
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

// A scan, but only while nobody else can bury, and no oftener than a heartbeat.
void sender_core::bury_what_nobody_can(instant now) {
  if (!config_.buries_itself || closing_ || burial_room_ == 0 || now.boot < next_burial_scan_) {
    return;
  }
  next_burial_scan_ = after(now.boot, config_.heartbeat);
  const bool someone = anyone_buries();
  while (!someone) {  // what waits for its turn behind others is moved aside, so that it can be taken out
    auto* m = ledger_.front();
    if (m == nullptr || now.boot < m->limit) {
      break;
    }
    ledger_.pop_front();
    ledger_.park(m, never);
    overdue_.push_back(m->number);
  }
  const auto bury = [&](std::vector<std::uint64_t>& numbers, reason why) {
    std::erase_if(numbers, [&](std::uint64_t number) {
      auto* m = ledger_.find(number);
      const auto size = m->size() + dead_letter_overhead;
      if (burial_room_ == 0 || burial_room_bytes_ < size) {
        return false;
      }
      --burial_room_;
      burial_room_bytes_ -= size;
      if (!m->condemned) {
        ledger_.condemn(m, why, error_class::none, {});
      }
      ledger_.bury(m);
      burials.push_back(
          {{config_.sender_id, config_.epoch, number}, m, m->why, ledger_.record_of(*m, now, final_state::condemned)});
      return true;
    });
  };
  if (!someone) {
    bury(overdue_, reason::too_old);
  }
  bury(undeliverable_, reason::too_large);
}

void sender_core::handle_buried(instant now, std::uint64_t number) {
  auto* m = ledger_.find(number);
  if (m != nullptr && m->where == stored_message::place::burying) {
    finish_buried(now, m);
  }
}

}  // namespace onay::core
