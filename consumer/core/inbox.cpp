// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/inbox.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace onay::core {

namespace {

constexpr std::uint32_t chunk_slots = 1024;

// Sizing ahead stops here, at 512 MiB of address space: a limit of billions should work, growing, on a machine that
// doesn't overcommit.
constexpr std::uint32_t sized_ahead_max = 1U << 24U;

enum class record_state : std::uint8_t { absent, claimed, completed };

// A freed slot keeps memory up to this size for its next key, which saves a free and a malloc of cold memory a claim.
constexpr std::uint32_t kept_memory_max = 128;

// So many evictions ahead the victim's place in the index is loaded.
constexpr std::uint32_t evictions_ahead = 12;

}  // namespace

// One cache line: a claim touches no second one.
struct alignas(64) inbox::slot {
  std::uint64_t hash = 0;
  fingerprint payload;
  char* bytes = nullptr;  // the key, then the result; malloc'd, because a result extends it
  std::uint32_t capacity = 0;
  std::uint32_t key_size = 0;
  std::uint32_t result_size = 0;
  std::uint32_t pins = 0;
  // Neighbours in the list of confirmed records, by age; free slots use `next` alone.
  std::uint32_t previous = none;
  std::uint32_t next = none;
  record_state state = record_state::absent;

  [[nodiscard]] std::string_view key() const { return {bytes, key_size}; }
  [[nodiscard]] std::string_view result() const { return {bytes + key_size, result_size}; }

  // Room for so many bytes; those that are there stay.
  void reserve(std::size_t size) {
    assert(size <= std::numeric_limits<std::uint32_t>::max());
    if (size > capacity) {
      auto* more = static_cast<char*>(std::realloc(bytes, size));
      if (more == nullptr) {
        throw std::bad_alloc();
      }
      bytes = more;
      capacity = static_cast<std::uint32_t>(size);
    }
  }
  void release() {
    std::free(std::exchange(bytes, nullptr));
    capacity = 0;
  }
};

inbox::inbox(std::uint32_t records_max, std::uint64_t hash_seed)
    : records_max_(records_max), seed_(hash_seed), index_(std::min(records_max, sized_ahead_max)) {
  static_assert(sizeof(slot) == 64, "a million records should fit into 64 MB, keys and results apart");
  assert(records_max >= 1 && records_max < none);
}

inbox::~inbox() {
  for (std::uint32_t r = 0; r < slots_used_; ++r) {
    at(r).release();
  }
}

// --- getters ---

inbox::slot& inbox::at(record r) const {
  assert(r < slots_used_);
  return chunks_[r / chunk_slots][r % chunk_slots];
}

std::uint64_t inbox::hash(std::string_view key) const { return hash_bytes(key, seed_); }

void inbox::prefetch(std::uint64_t hash) const { index_.prefetch(hash); }

inbox::record inbox::find(std::string_view key, std::uint64_t hash) const {
  const record* found = index_.find(hash, [&](record r) { return at(r).key() == key; });
  return found != nullptr ? *found : none;
}

bool inbox::completed(record r) const { return at(r).state == record_state::completed; }

fingerprint inbox::payload_of(record r) const { return at(r).payload; }

std::string_view inbox::result_of(record r) const { return at(r).result(); }

std::uint32_t inbox::size() const { return size_; }

std::uint32_t inbox::claimed() const { return claimed_; }

std::uint32_t inbox::pinned() const { return pinned_; }

std::uint32_t inbox::free() const { return records_max_ - claimed_ - pinned_; }

std::uint64_t inbox::pins_of(std::uint64_t sender) const {
  auto it = senders_.find(sender);
  return it == senders_.end() ? 0 : it->second.pins.size();
}

// --- claims ---

inbox::record inbox::claim(std::string_view key, std::uint64_t hash, fingerprint payload) {
  assert(free() > 0 && find(key, hash) == none);
  if (size_ == records_max_) {
    // Records are mostly confirmed in the order of their claims, so the slots of the next victims mostly follow.
    index_.prefetch(at((oldest_confirmed_ + evictions_ahead) % slots_used_).hash);
    remove(oldest_confirmed_);
  }
  if (free_slots_ == none) {
    add_slot();
  }
  const record r = free_slots_;
  slot& s = at(r);
  s.reserve(key.size());
  index_.insert(hash, r);  // the last that can throw
  free_slots_ = s.next;

  std::copy(key.begin(), key.end(), s.bytes);
  s.key_size = static_cast<std::uint32_t>(key.size());
  s.result_size = 0;
  s.hash = hash;
  s.payload = payload;
  s.state = record_state::claimed;
  ++size_;
  ++claimed_;
  return r;
}

void inbox::abandon(record r) {
  assert(at(r).state == record_state::claimed);
  remove(r);
}

void inbox::complete(record r, std::string_view result) {
  slot& s = at(r);
  assert(s.state == record_state::claimed);
  if (!result.empty()) {
    s.reserve(s.key_size + result.size());
    std::copy(result.begin(), result.end(), s.bytes + s.key_size);
    s.result_size = static_cast<std::uint32_t>(result.size());
  }
  s.state = record_state::completed;
  --claimed_;
  append_confirmed(r);
}

// --- pins ---

void inbox::pin(record r, std::uint64_t sender, std::uint64_t epoch, std::uint64_t number) {
  slot& s = at(r);
  assert(s.state == record_state::completed);
  sender_pins& of = pins_for(sender, epoch);
  if (pin_slot* known = of.pins.find(number)) {
    if (known->target == r) {
      return;
    }
    unpin(std::exchange(known->target, r));
  } else {
    of.pins.insert(number, pin_slot{r});
  }
  if (s.pins++ == 0) {
    unlink_confirmed(r);
    ++pinned_;
  }
}

void inbox::confirm(std::uint64_t sender, std::uint64_t epoch, std::uint64_t number) {
  auto it = senders_.find(sender);
  if (it == senders_.end() || it->second.epoch != epoch) {
    return;
  }
  if (const pin_slot* found = it->second.pins.find(number)) {
    unpin(found->target);
    it->second.pins.erase(number);
  }
}

void inbox::confirm_below(std::uint64_t sender, std::uint64_t epoch, std::uint64_t lowest) {
  auto it = senders_.find(sender);
  if (it == senders_.end()) {
    return;
  }
  auto& [of_epoch, pins] = it->second;
  if (of_epoch != epoch) {
    drop_pins(it->second);
  }
  while (!pins.empty() && pins.lowest() < lowest) {
    const std::uint64_t number = pins.lowest();
    unpin(pins.find(number)->target);
    pins.erase(number);
  }
  if (pins.empty()) {
    senders_.erase(it);
  }
}

std::uint64_t inbox::forget_sender(std::uint64_t sender) {
  auto it = senders_.find(sender);
  if (it == senders_.end()) {
    return 0;
  }
  const std::uint64_t dropped = drop_pins(it->second);
  senders_.erase(it);
  return dropped;
}

inbox::sender_pins& inbox::pins_for(std::uint64_t sender, std::uint64_t epoch) {
  auto it = senders_.find(sender);
  if (it == senders_.end()) {
    // `confirm` leaves a sender without pins in place, since its next pin is likely near. Those that never come back
    // are swept out here, each time the senders have doubled.
    if (senders_.size() >= senders_swept_at_) {
      std::erase_if(senders_, [](const auto& entry) { return entry.second.pins.empty(); });
      senders_swept_at_ = std::max<std::size_t>(64, senders_.size() * 2);
    }
    it = senders_.try_emplace(sender).first;
    it->second.epoch = epoch;
  } else if (it->second.epoch != epoch) {
    drop_pins(it->second);
    it->second.epoch = epoch;
  }
  return it->second;
}

std::uint64_t inbox::drop_pins(sender_pins& from) {
  const std::uint64_t dropped = from.pins.size();
  from.pins.for_each([&](std::uint64_t, pin_slot& p) { unpin(p.target); });
  from.pins.clear();
  return dropped;
}

void inbox::unpin(record r) {
  slot& s = at(r);
  assert(s.pins > 0);
  if (--s.pins == 0) {
    --pinned_;
    append_confirmed(r);
  }
}

// --- slots and the list of confirmed records ---

void inbox::add_slot() {
  if (slots_used_ % chunk_slots == 0) {
    chunks_.push_back(std::make_unique<slot[]>(chunk_slots));
  }
  const record r = slots_used_++;
  at(r).next = std::exchange(free_slots_, r);
}

// A claim, or a confirmed record.
void inbox::remove(record r) {
  slot& s = at(r);
  assert(s.state != record_state::absent && s.pins == 0);
  if (s.state == record_state::claimed) {
    --claimed_;
  } else {
    unlink_confirmed(r);
  }
  [[maybe_unused]] const bool erased = index_.erase(s.hash, [r](record other) { return other == r; });
  assert(erased);
  if (s.capacity > kept_memory_max) {
    s.release();
  }
  s.state = record_state::absent;
  s.next = std::exchange(free_slots_, r);
  --size_;
}

void inbox::append_confirmed(record r) {
  slot& s = at(r);
  s.previous = newest_confirmed_;
  s.next = none;
  (newest_confirmed_ == none ? oldest_confirmed_ : at(newest_confirmed_).next) = r;
  newest_confirmed_ = r;
}

void inbox::unlink_confirmed(record r) {
  const slot& s = at(r);
  (s.previous == none ? oldest_confirmed_ : at(s.previous).next) = s.next;
  (s.next == none ? newest_confirmed_ : at(s.next).previous) = s.previous;
}

}  // namespace onay::core
