// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The judgement over a run: what the sender said (receipts), what the handlers did (events) and what the collector
// keeps (letters), held against each other. Knows no files, sockets or clocks. A dozen bytes an operation, so that ten
// million fit.
#pragma once

#include "effects.hpp"
#include "keys.hpp"
#include "letters.hpp"
#include "receipts.hpp"

#include <onay/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onay::sim {

// How one life of a worker ended.
struct death {
  enum class cause : std::uint8_t { none, killed, crashed };  // crashed: not by us
  cause why = cause::none;
  std::uint32_t at = 0;  // ticks
};

// What is known about the run itself.
struct audit_input {
  const key_catalog* keys = nullptr;
  std::vector<death> deaths;        // by life
  std::vector<std::uint32_t> cuts;  // ticks, ascending
  std::uint32_t cut_reach = 0;      // ticks: how long before an effect a cut may still explain its repetition
  std::optional<std::uint32_t> age_max_ms;
  std::optional<std::uint32_t> attempts_max;
  std::vector<std::uint64_t> poison;                    // ids that kill their worker, sorted
  const std::vector<std::uint32_t>* sent_at = nullptr;  // ticks by message; null or empty: not known
  bool effects_known = true;
  bool letters_known = true;
};

struct audit_result {
  std::uint64_t messages = 0, accepted = 0, dead_lettered = 0, refused = 0, open = 0;
  std::uint64_t lost = 0;                // no end, or accepted without an effect, or dead without its letter
  std::uint64_t duplicate_effects = 0;   // effects beyond an operation's first
  std::uint64_t excused_duplicates = 0;  // of those: explained by a kill, a crash or a cut
  std::uint64_t excused_by_cut = 0;      // of those: by a cut alone
  std::uint64_t both_ends = 0;           // operations that were accepted and dead-lettered
  std::uint64_t repeated_letters = 0;    // letters whose id the file has already
  std::uint64_t stray_letters = 0;       // letters of messages that their sender doesn't call dead
  std::uint64_t dead_with_effect = 0;  // dead-lettered operations that have an effect: only a kill or a cut may do that
  std::uint64_t unearned_letters = 0;  // `rejected` without a refusal
  std::uint64_t untried_letters =
      0;  // `attempts_exhausted` with fewer starts than that: only a kill or a cut may do that
  std::uint64_t innocent_letters = 0;  // `attempts_exhausted`, and the last attempt died of another message's poison
  std::uint64_t handler_starts = 0;
  std::uint64_t starts_beyond_first = 0;
  std::uint64_t started_operations = 0;
  std::uint64_t failed_attempts = 0, refused_attempts = 0, unfinished_attempts = 0;
  std::uint64_t overlaps = 0;         // starts of an operation while another run of it went on in the same process
  std::uint64_t late_starts = 0;      // past the message's age limit
  std::uint64_t unknown_keys = 0;     // events or letters of keys that were never sent
  std::uint64_t waits = 0;            // starts after a failed attempt, and
  double waiting_ms = 0;              // how long those had waited, on average
  std::vector<std::string> problems;  // why it isn't ok, in words
  [[nodiscard]] bool ok() const { return problems.empty(); }
};

class audit {
 public:
  explicit audit(audit_input input);

  // Everything that happened in the handlers, as `event_reader` gives it.
  void add(const event& e);
  // Everything in the collector's file; after the events.
  void add(const letter& l);
  // At the end, once.
  [[nodiscard]] audit_result judge(const receipt_book& book);

 private:
  struct operation {
    std::uint32_t ended_at = 0;    // of the last attempt that ended
    std::uint16_t running_in = 0;  // life + 1 of the last start that hasn't ended
    std::uint16_t effect_in = 0;   // life of the last effect
    std::uint16_t starts = 0;      // no further than 65,535
    std::uint8_t effects = 0;      // no further than 255
    std::uint8_t flags = 0;
  };
  void add_start(operation& o, std::uint64_t number, const event& e);
  void add_effect(operation& o, const event& e);
  void judge_message(std::uint64_t message, ending end);
  void judge_letter(const operation& o, std::uint64_t id, const letter& l);
  void find_problems();

  audit_input input_;
  std::vector<operation> operations_;
  std::vector<std::uint64_t> letter_ids_;  // hashes
  double waited_ticks_ = 0;
  audit_result result_;
};

}  // namespace onay::sim
