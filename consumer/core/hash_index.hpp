// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// hash -> small value, open addressing. The caller compares keys: the table keeps 64-bit hashes only, and equal hashes
// are legal. Sized ahead where the number of entries is known (perf: a growing table costs a third of the throughput);
// a table sized ahead takes address space, and memory only page by page as it fills.
//
// Linear probing, because a probe sequence then stays within a cache line or two; deletion shifts the rest of the run
// back, because tombstones would slow down a table that evicts as often as it inserts. Slots of 16 bytes, at most three
// quarters of them in use: 21 to 43 bytes an entry.
#pragma once

#include "core/prefetch.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace onay::core {

// T: trivially copyable, e.g. a pointer or an index.
template <class T>
class hash_index {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Room for `expected` entries without growing; grows beyond.
  explicit hash_index(std::size_t expected = 0) {
    if (expected > 0) {
      allocate(slots_for(expected));
    }
  }
  hash_index(hash_index&& other) noexcept { swap(other); }
  hash_index& operator=(hash_index&& other) noexcept {
    hash_index moved(std::move(other));
    swap(moved);
    return *this;
  }

  // The first entry with this hash for which `same(value)` holds; null if none. Lives until the next change.
  template <class Same>
  T* find(std::uint64_t hash, Same&& same) {
    const std::size_t at = position(hash, same);
    return at == nowhere ? nullptr : &slots_[at].value;
  }
  template <class Same>
  const T* find(std::uint64_t hash, Same&& same) const {
    const std::size_t at = position(hash, same);
    return at == nowhere ? nullptr : &slots_[at].value;
  }

  // Equal hashes may be inserted; duplicates are the caller's business.
  void insert(std::uint64_t hash, T value) {
    if (size_ >= size_max_) {
      grow();
    }
    place(stored(hash), value);
    ++size_;
  }

  // The first entry that `find` would give; false if there is none.
  template <class Same>
  bool erase(std::uint64_t hash, Same&& same) {
    std::size_t hole = position(hash, same);
    if (hole == nowhere) {
      return false;
    }
    // An entry may move into the hole if that doesn't put it before its home, the place where its search starts.
    for (std::size_t at = next(hole); slots_[at].hash != empty; at = next(at)) {
      const std::size_t home = slots_[at].hash & mask_;
      if (((at - home) & mask_) >= ((at - hole) & mask_)) {
        slots_[hole] = slots_[at];
        hole = at;
      }
    }
    slots_[hole].hash = empty;
    --size_;
    return true;
  }

  // Starts loading the place where the search for this hash begins, and the one where it mostly ends.
  void prefetch(std::uint64_t hash) const {
    if (slots_) {
      core::prefetch(&slots_[stored(hash) & mask_], 128);
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  // Removes every entry and gives the memory back.
  void clear() {
    hash_index fresh;
    swap(fresh);
  }

 private:
  struct slot {
    std::uint64_t hash;
    T value;
  };
  struct free_memory {
    void operator()(slot* memory) const { std::free(memory); }
  };

  static constexpr std::uint64_t empty = 0;
  static constexpr std::size_t nowhere = ~std::size_t{0};
  static constexpr std::size_t slots_min = 16;

  // Zero marks an empty slot, so a hash of zero is kept as another one: equal hashes are legal anyway.
  static std::uint64_t stored(std::uint64_t hash) { return hash == empty ? ~std::uint64_t{0} : hash; }

  static std::size_t slots_for(std::size_t entries) {
    const std::size_t slots = std::bit_ceil(entries < slots_min ? slots_min : entries);
    return entries > slots / 4 * 3 ? slots * 2 : slots;
  }

  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & mask_; }

  template <class Same>
  std::size_t position(std::uint64_t hash, Same& same) const {
    if (size_ == 0) {
      return nowhere;
    }
    hash = stored(hash);
    // Ends: a quarter of the slots is empty.
    for (std::size_t at = hash & mask_; slots_[at].hash != empty; at = next(at)) {
      if (slots_[at].hash == hash && same(std::as_const(slots_[at].value))) {
        return at;
      }
    }
    return nowhere;
  }

  void place(std::uint64_t stored_hash, T value) {
    std::size_t at = stored_hash & mask_;
    while (slots_[at].hash != empty) {
      at = next(at);
    }
    slots_[at] = slot{stored_hash, value};
  }

  // calloc instead of a vector: the system's zero pages are empty slots, and cost nothing until they are written.
  void allocate(std::size_t slots) {
    slots_.reset(static_cast<slot*>(std::calloc(slots, sizeof(slot))));
    if (!slots_) {
      throw std::bad_alloc();
    }
    mask_ = slots - 1;
    size_max_ = slots / 4 * 3;
  }

  void grow() {
    hash_index bigger;
    bigger.allocate(slots_ ? (mask_ + 1) * 2 : slots_min);
    for (std::size_t at = 0; size_ > 0 && at <= mask_; ++at) {
      if (slots_[at].hash != empty) {
        bigger.place(slots_[at].hash, slots_[at].value);
      }
    }
    bigger.size_ = size_;
    swap(bigger);
  }

  void swap(hash_index& other) noexcept {
    slots_.swap(other.slots_);
    std::swap(mask_, other.mask_);
    std::swap(size_, other.size_);
    std::swap(size_max_, other.size_max_);
  }

  std::unique_ptr<slot[], free_memory> slots_;  // none, or a power of two
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
  std::size_t size_max_ = 0;
};

}  // namespace onay::core
