// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "audit.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <limits>

namespace onay::sim {
namespace {

enum flag : std::uint8_t {
  failed_before = 1,  // the last attempt that ended failed
  has_letter = 2,     // of any reason but the next one
  has_conflict = 4,   // a letter for a second message of the same key with another payload
  accepted = 8,
  dead = 16,
  was_refused = 32,  // an attempt failed for good
};

template <class T>
void count_up(T& value) {
  if (value < std::numeric_limits<T>::max()) ++value;
}

// The context's own word on the age is exact; what the audit measures has the transit in it, and a busy machine.
constexpr std::uint32_t own_age_slack_ms = 250;
// A death is dated when we learn of it; the sender may have heard first.
constexpr std::uint32_t death_slack = 2500;

}  // namespace

audit::audit(audit_input input) : input_(std::move(input)), operations_(input_.keys->operations()) {}

void audit::add(const event& e) {
  const auto number = input_.keys->find(e.id);
  if (!number) {
    ++result_.unknown_keys;
    return;
  }
  auto& o = operations_[*number];
  if (e.kind == event_kind::start) {
    add_start(o, *number, e);
    return;
  }
  if (e.kind == event_kind::effect) add_effect(o, e);
  result_.failed_attempts += e.kind == event_kind::failed ? 1U : 0U;
  result_.refused_attempts += e.kind == event_kind::refused ? 1U : 0U;
  o.flags = static_cast<std::uint8_t>(o.flags & ~failed_before);
  if (e.kind == event_kind::failed) o.flags |= failed_before;
  if (e.kind == event_kind::refused) o.flags |= was_refused;
  if (o.running_in == e.life + 1U) o.running_in = 0;
  o.ended_at = e.at;
}

void audit::add_start(operation& o, std::uint64_t number, const event& e) {
  ++result_.handler_starts;
  if (o.starts > 0) ++result_.starts_beyond_first;
  count_up(o.starts);
  if (o.running_in == e.life + 1U) ++result_.overlaps;
  o.running_in = static_cast<std::uint16_t>(e.life + 1U);
  if ((o.flags & failed_before) != 0) {
    ++result_.waits;
    waited_ticks_ += e.at >= o.ended_at ? e.at - o.ended_at : 0;
    o.flags = static_cast<std::uint8_t>(o.flags & ~failed_before);
  }
  if (!input_.age_max_ms) return;
  bool late = e.age_ms > *input_.age_max_ms;
  // With free keys an operation may have been sent twice; then only the context's word counts.
  if (input_.sent_at != nullptr && input_.keys->style() == key_style::numbered && number < input_.sent_at->size()) {
    const auto sent = (*input_.sent_at)[number];
    const auto age = std::uint64_t{e.at} - std::min(e.at, sent);
    late = late || age * event_tick.count() / 1000 > *input_.age_max_ms + own_age_slack_ms;
  }
  if (late) ++result_.late_starts;
}

// A repetition in the same process is never excused: that process has the record of the first. One in another process
// is, if the first process was killed meanwhile (its record, and perhaps its answer, died with it), or if a link was
// cut shortly before or after the first effect (its answer may not have arrived before its lease was over).
void audit::add_effect(operation& o, const event& e) {
  if (o.effects > 0) ++result_.duplicate_effects;
  if (o.effects > 0 && o.effect_in != e.life) {
    const auto end = o.effect_in < input_.deaths.size() ? input_.deaths[o.effect_in] : death{};
    const bool killed = end.why != death::cause::none && end.at <= e.at + death_slack;
    const auto from = o.ended_at - std::min(o.ended_at, input_.cut_reach);
    const auto cut = std::lower_bound(input_.cuts.begin(), input_.cuts.end(), from);
    const bool was_cut = cut != input_.cuts.end() && *cut <= e.at;
    if (killed || was_cut) ++result_.excused_duplicates;
    if (!killed && was_cut) ++result_.excused_by_cut;
  }
  count_up(o.effects);
  o.effect_in = e.life;
}

void audit::add(const letter& l) {
  letter_ids_.push_back(hash_text(l.id));
  const auto& keys = *input_.keys;
  const auto id = keys.style() == key_style::free ? std::optional(l.key_hash) : number_of(l.operation_key);
  const auto number = id ? keys.find(*id) : std::nullopt;
  if (!number) {
    ++result_.unknown_keys;
    return;
  }
  auto& o = operations_[*number];
  o.flags |= l.why == to_string(reason::key_conflict) ? has_conflict : has_letter;
  if (input_.effects_known) judge_letter(o, *id, l);
}

void audit::judge_letter(const operation& o, std::uint64_t id, const letter& l) {
  if (l.why == to_string(reason::rejected) && (o.flags & was_refused) == 0) ++result_.unearned_letters;
  if (l.why != to_string(reason::attempts_exhausted)) return;
  if (input_.attempts_max && o.starts < *input_.attempts_max) ++result_.untried_letters;
  // Killed by us it would be allowed: a message that runs alone is taken to be what its worker died of.
  const auto last = o.running_in - std::size_t{1};
  const bool crashed = last < input_.deaths.size() && input_.deaths[last].why == death::cause::crashed;
  if (crashed && !std::binary_search(input_.poison.begin(), input_.poison.end(), id)) ++result_.innocent_letters;
}

void audit::judge_message(std::uint64_t message, ending end) {
  auto& o = operations_[input_.keys->operation_of(message)];
  if (end == ending::unsent) return;
  ++result_.messages;
  switch (end) {
    case ending::accepted:
      ++result_.accepted;
      o.flags |= accepted;
      if (input_.effects_known && o.effects == 0) ++result_.lost;
      break;
    case ending::dead_lettered:
      ++result_.dead_lettered;
      o.flags |= dead;
      if (input_.letters_known && (o.flags & (has_letter | has_conflict)) == 0) ++result_.lost;
      break;
    case ending::refused:
      ++result_.refused;
      break;
    default:
      ++result_.open;
      ++result_.lost;
  }
}

audit_result audit::judge(const receipt_book& book) {
  for (std::uint64_t m = 0; m < book.size(); ++m) judge_message(m, book.of(m));
  for (const auto& o : operations_) {
    if (o.starts > 0) ++result_.started_operations;
    // A key that came twice with different payloads has, rightly, one message of each end.
    const bool conflict = (o.flags & has_conflict) != 0;
    if (!conflict && (o.flags & accepted) != 0 && (o.flags & (dead | has_letter)) != 0) ++result_.both_ends;
    if ((o.flags & has_letter) != 0 && (o.flags & (dead | accepted)) == 0) ++result_.stray_letters;
    if ((o.flags & dead) != 0 && !conflict && o.effects > 0) ++result_.dead_with_effect;
  }
  std::sort(letter_ids_.begin(), letter_ids_.end());
  for (std::size_t i = 1; i < letter_ids_.size(); ++i) {
    if (letter_ids_[i] == letter_ids_[i - 1]) ++result_.repeated_letters;
  }
  const auto effects = result_.duplicate_effects +
                       static_cast<std::uint64_t>(std::count_if(operations_.begin(), operations_.end(),
                                                                [](const operation& o) { return o.effects > 0; }));
  const auto ended = effects + result_.failed_attempts + result_.refused_attempts;
  result_.unfinished_attempts = result_.handler_starts - std::min(result_.handler_starts, ended);
  if (result_.waits > 0) {
    result_.waiting_ms =
        waited_ticks_ * static_cast<double>(event_tick.count()) / 1000 / static_cast<double>(result_.waits);
  }
  find_problems();
  return result_;
}

void audit::find_problems() {
  const auto complain = [&](std::uint64_t count, const char* text) {
    if (count > 0) result_.problems.push_back(fmt::format("{} {}", count, text));
  };
  auto& r = result_;
  complain(r.lost, "lost: no receipt, or accepted without an effect, or dead without its letter");
  complain(r.duplicate_effects - r.excused_duplicates, "duplicate effects that no kill and no cut explains");
  complain(r.both_ends, "accepted and dead-lettered as well");
  complain(r.repeated_letters, "letters stored twice");
  complain(r.stray_letters, "letters of messages that the sender doesn't call dead");
  complain(r.unearned_letters, "letters that say \"rejected\" of what was not");
  complain(r.innocent_letters, "letters of messages that were near a poison one when it killed their worker");
  const bool disturbed =
      !input_.cuts.empty() || std::any_of(input_.deaths.begin(), input_.deaths.end(),
                                          [](const death& d) { return d.why != death::cause::none; });
  if (!disturbed) {
    complain(r.dead_with_effect, "dead-lettered although their effect happened");
    complain(r.untried_letters, "letters that say \"attempts_exhausted\" of what was started less often");
  }
  complain(r.overlaps, "runs of a key while another run of it went on in the same worker");
  complain(r.late_starts, "starts past the message's age limit");
  complain(r.unknown_keys, "events or letters of keys that were never sent");
}

}  // namespace onay::sim
