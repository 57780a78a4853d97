// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The consumer's record of operation keys, in memory: claims, first results, payload fingerprints, and which messages
// still pin a record. It holds no policy. A store on disk keeps this as its index and appends rows beside it.
//
// Lifecycle of a record: absent -> claimed (a delivery of the key is queued or runs) -> completed, pinned by the
// messages whose settlement isn't confirmed -> completed, confirmed (evictable, oldest first) -> absent. A claim that
// ends without an effect goes back to absent.
#pragma once

#include "core/hash.hpp"
#include "core/hash_index.hpp"
#include "core/sequence_table.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace onay::core {

class inbox {
 public:
  // Names a record until it is evicted or its claim is abandoned.
  using record = std::uint32_t;
  static constexpr record none = 0xffffffff;

  // `records_max` in [1, none - 1]; `hash_seed` random per process, so that nobody can choose colliding keys.
  inbox(std::uint32_t records_max, std::uint64_t hash_seed);
  ~inbox();
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  // --- getters ---
  [[nodiscard]] std::uint64_t hash(std::string_view key) const;
  void prefetch(std::uint64_t hash) const;
  // By bytes, not by hash alone. `none` if absent.
  [[nodiscard]] record find(std::string_view key, std::uint64_t hash) const;
  [[nodiscard]] bool completed(record r) const;
  [[nodiscard]] fingerprint payload_of(record r) const;
  [[nodiscard]] std::string_view result_of(record r) const;  // lives as long as the record
  [[nodiscard]] std::uint32_t size() const;                  // records
  [[nodiscard]] std::uint32_t claimed() const;               // of those, not completed
  [[nodiscard]] std::uint32_t pinned() const;                // of those, completed and pinned
  // How many more claims fit: records_max - claimed - pinned. Confirmed records make room.
  [[nodiscard]] std::uint32_t free() const;

  // --- commands ---
  // The key must be absent and free() > 0. Evicts the oldest confirmed record if the inbox is full.
  record claim(std::string_view key, std::uint64_t hash, fingerprint payload);
  // Drops a claim; the key is absent afterwards.
  void abandon(record r);
  // The claim's effect is done. The record must be pinned at once (it is evictable otherwise).
  void complete(record r, std::string_view result);

  // A settlement of (sender, epoch, number) that relies on this completed record isn't confirmed yet. Repeating is
  // harmless. A sender has one live epoch: pinning a new epoch drops the pins of the old one.
  void pin(record r, std::uint64_t sender, std::uint64_t epoch, std::uint64_t number);
  // It is confirmed. Unknown ones are ignored.
  void confirm(std::uint64_t sender, std::uint64_t epoch, std::uint64_t number);
  // Everything of that sender below `lowest`, and of every other epoch of it, is confirmed.
  void confirm_below(std::uint64_t sender, std::uint64_t epoch, std::uint64_t lowest);
  // Drops all pins of a sender that stayed away too long; returns how many.
  std::uint64_t forget_sender(std::uint64_t sender);
  [[nodiscard]] std::uint64_t pins_of(std::uint64_t sender) const;

  // Every pinned message of a sender, by rising number: visit(epoch, number, result).
  template <class F>
  void for_each_pin(std::uint64_t sender, F&& visit) {
    auto it = senders_.find(sender);
    if (it == senders_.end()) {
      return;
    }
    it->second.pins.for_each(
        [&](std::uint64_t number, pin_slot& p) { visit(it->second.epoch, number, result_of(p.target)); });
  }

 private:
  struct slot;
  struct pin_slot {
    record target = none;
    explicit operator bool() const { return target != none; }
  };
  struct sender_pins {
    std::uint64_t epoch = 0;
    sequence_table<pin_slot> pins;
  };

  [[nodiscard]] slot& at(record r) const;
  void add_slot();
  void remove(record r);
  void append_confirmed(record r);
  void unlink_confirmed(record r);
  void unpin(record r);
  std::uint64_t drop_pins(sender_pins& from);
  sender_pins& pins_for(std::uint64_t sender, std::uint64_t epoch);

  const std::uint32_t records_max_;
  const std::uint64_t seed_;
  hash_index<record> index_;
  // Slots in chunks that come as they are needed, so that a large limit costs nothing before it is used.
  std::vector<std::unique_ptr<slot[]>> chunks_;
  std::uint32_t slots_used_ = 0;  // ever; those above were never touched
  record free_slots_ = none;      // a list through `slot::next`
  record oldest_confirmed_ = none;
  record newest_confirmed_ = none;
  std::uint32_t size_ = 0;
  std::uint32_t claimed_ = 0;
  std::uint32_t pinned_ = 0;
  std::unordered_map<std::uint64_t, sender_pins> senders_;
  std::size_t senders_swept_at_ = 64;  // that many senders: those without pins go
};

}  // namespace onay::core
