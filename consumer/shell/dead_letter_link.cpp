// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/dead_letter_link.hpp"

#include "shell/options.hpp"
#include "wire/codec.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace onay::shell {

namespace {

core::sender_config config_of(const std::string& origin, std::uint64_t largest) {
  core::sender_config c;
  c.logical_id = origin;
  c.instance = random_bits();
  c.sender_id = random_bits();
  c.epoch = random_bits();
  c.hash_seed = random_bits();
  c.age_max = std::nullopt;  // a letter waits as long as it takes
  c.largest_message = largest + dead_letter_overhead_max;
  return c;
}

}  // namespace

dead_letter_link::dead_letter_link(zmq::context_t& context, const endpoint& where, const std::string& origin,
                                   std::uint64_t largest, link_filter* filter)
    : origin_(origin),
      sockets_(context, {where}, largest_frame(largest + dead_letter_overhead_max)),
      core_(config_of(origin, largest), entropy_),
      link_(core_, sockets_, filter) {}

std::uint64_t dead_letter_link::room() const {
  const auto waiting = core_.messages().ready();
  return core_.free_credit() - std::min<std::uint64_t>(core_.free_credit(), waiting);
}

std::uint64_t dead_letter_link::room_bytes() const {
  const auto free = core_.free_credit_bytes();
  return free - std::min(free, core_.messages().ready_bytes());
}

void dead_letter_link::handle_time(core::instant now) {
  core_.handle_time(now);
  link_.handle_time(now);
}

void dead_letter_link::bury(core::instant now, const letter& l) {
  auto& same = under_way_[l.id];
  same.push_back(l.owner);
  if (same.size() > 1) {
    return;
  }
  wire::dead_letter_parts parts;
  parts.id = l.id;
  parts.origin = origin_;
  parts.why = l.why;
  parts.record = l.record;
  parts.headers = l.headers;
  parts.payload = l.payload;
  wire::encode_dead_letter(parts, scratch_);
  auto m = core_.make_message(wire::dead_letter_key(l.id), std::string_view(), scratch_);
  m->receipt = std::make_shared<message_id>(l.id);
  core_.submit(now, std::move(m));
}

bool dead_letter_link::flush(core::instant now, std::vector<confirmed>& buried) {
  core_.flush(now);
  const bool told = link_.send(now);
  for (const auto& f : core_.finished_messages) {
    // Whatever became of it there, the collector has answered for it: accepted, or buried by its own rules.
    if (f.state != final_state::accepted && f.state != final_state::dead_lettered) {
      continue;
    }
    auto it = under_way_.find(*static_cast<const message_id*>(f.receipt.get()));
    for (auto* owner : it->second) {
      buried.push_back({it->first, owner});
    }
    under_way_.erase(it);
  }
  core_.finished_messages.clear();
  return told;
}

time_point dead_letter_link::next_deadline(time_point now) const {
  return std::min(core_.next_deadline(), link_.next_deadline(now));
}

}  // namespace onay::shell
