// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Values by rising number (tags of a session, messages of an outbox). Nearly all live entries lie in one dense window
// that moves up, so that window is a ring: a few nanoseconds an access and 1x to 2x sizeof(T) an entry. An entry that
// stays behind (a stuck handler, a parked retry) would stretch the ring over everything that passed it; such stragglers
// move to a map. Any 64-bit number may come: numbers are a peer's choice.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace onay::core {

// T: cheap to move; a default-constructed T means "no entry" and converts to false.
template <class T>
class sequence_table {
 public:
  // Null if there is none. The pointer lives until the next insert or erase.
  T* find(std::uint64_t number) {
    if (in_ring(number)) {
      T& slot = ring_[number & mask()];
      return static_cast<bool>(slot) ? &slot : nullptr;
    }
    if (!may_straggle(number)) {
      return nullptr;
    }
    auto it = stragglers_.find(number);
    return it == stragglers_.end() ? nullptr : &it->second;
  }
  const T* find(std::uint64_t number) const { return const_cast<sequence_table*>(this)->find(number); }

  // `number` must not be present and `value` must be an entry. The pointer lives until the next insert or erase.
  T* insert(std::uint64_t number, T value) {
    assert(static_cast<bool>(value) && find(number) == nullptr);
    if (length_ == 0) {
      // Nothing lives in the ring, so it may start anywhere above the stragglers.
      base_ = stragglers_.empty() || number > stragglers_.rbegin()->first ? number : after(stragglers_.rbegin()->first);
    }
    if (number < base_) {
      T* place = &stragglers_.emplace(number, std::move(value)).first->second;
      ++size_;
      return place;
    }
    if (!in_ring(number)) {
      make_room(number);
      length_ = number - base_ + 1;
    }
    T& slot = ring_[number & mask()];
    slot = std::move(value);
    ++size_;
    return &slot;
  }

  // False if there was none.
  bool erase(std::uint64_t number) {
    if (in_ring(number)) {
      T& slot = ring_[number & mask()];
      if (!static_cast<bool>(slot)) {
        return false;
      }
      slot = T{};
      --size_;
      if (number == base_) {
        skip_empty();
      }
      return true;
    }
    if (may_straggle(number) && stragglers_.erase(number) > 0) {
      --size_;
      return true;
    }
    return false;
  }

  // Erases it and gives it back; it must be there.
  T take(std::uint64_t number) {
    assert(find(number) != nullptr);
    --size_;
    if (!in_ring(number)) {
      return std::move(stragglers_.extract(number).mapped());
    }
    T value = std::exchange(ring_[number & mask()], T{});
    if (number == base_) {
      skip_empty();
    }
    return value;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  // Only when not empty.
  [[nodiscard]] std::uint64_t lowest() const {
    assert(size_ > 0);
    return stragglers_.empty() ? base_ : stragglers_.begin()->first;
  }

  // In rising order. `visit(number, T&)` must not insert or erase.
  template <class F>
  void for_each(F&& visit) {
    for (auto& [number, value] : stragglers_) {
      visit(number, value);
    }
    for (std::uint64_t i = 0; i < length_; ++i) {
      if (T& slot = ring_[(base_ + i) & mask()]; static_cast<bool>(slot)) {
        visit(base_ + i, slot);
      }
    }
  }

  // Those in [first, last], in rising order, at a cost that follows the live entries and not the span.
  // `visit(number, T&)` may erase that number, and nothing else.
  template <class F>
  void for_each_in(std::uint64_t first, std::uint64_t last, F&& visit) {
    if (may_straggle(first)) {
      for (auto it = stragglers_.lower_bound(first); it != stragglers_.end() && it->first <= last;) {
        auto at = it++;
        visit(at->first, at->second);
      }
    }
    for (std::uint64_t n = std::max(first, base_); n <= last && in_ring(n); n = std::max(n + 1, base_)) {
      if (T& slot = ring_[n & mask()]; static_cast<bool>(slot)) {
        visit(n, slot);
      }
      if (n == last) {
        break;  // the number after the highest would start over
      }
    }
  }

  void clear() {
    ring_.clear();
    stragglers_.clear();
    base_ = 0;
    length_ = 0;
    size_ = 0;
  }

 private:
  [[nodiscard]] std::uint64_t mask() const { return ring_.size() - 1; }
  // One comparison: below `base_` the difference wraps to at least 2^64 - base_, which is never less than length_.
  [[nodiscard]] bool in_ring(std::uint64_t number) const { return number - base_ < length_; }
  // Spares new numbers, which are the highest, a walk through the map.
  [[nodiscard]] bool may_straggle(std::uint64_t number) const {
    return !stragglers_.empty() && (length_ == 0 || number < base_);
  }
  // A straggler is never the highest number of all (see make_room), so this doesn't wrap.
  static std::uint64_t after(std::uint64_t number) { return number + 1; }

  void skip_empty() {
    while (length_ > 0 && !static_cast<bool>(ring_[base_ & mask()])) {
      ++base_;
      --length_;
    }
  }

  // Makes the ring reach `number`, which is above it. The ring holds at most four slots a live entry (and 64): past
  // that the lowest entries become stragglers, so memory follows the entries and not the span between them. Only half
  // of the allowed length is kept then, so that the next such move is many inserts away.
  void make_room(std::uint64_t number) {
    if (number - base_ < ring_.size()) {
      return;
    }
    const std::uint64_t allowed = std::max<std::uint64_t>(64, std::bit_floor(std::uint64_t(size_) * 4));
    if (number - base_ >= allowed) {
      const std::uint64_t new_base = number - allowed / 2 + 1;
      while (length_ > 0 && base_ < new_base) {
        T& slot = ring_[base_ & mask()];
        if (static_cast<bool>(slot)) {
          stragglers_.emplace_hint(stragglers_.end(), base_, std::move(slot));
          slot = T{};
        }
        ++base_;
        --length_;
      }
      skip_empty();
      if (length_ == 0) {
        base_ = number;
      }
      if (number - base_ < ring_.size()) {
        return;
      }
    }
    std::vector<T> bigger(std::bit_ceil(std::max<std::uint64_t>(number - base_ + 1, 64)));
    for (std::uint64_t i = 0; i < length_; ++i) {
      bigger[(base_ + i) & (bigger.size() - 1)] = std::move(ring_[(base_ + i) & mask()]);
    }
    ring_.swap(bigger);
  }

  std::vector<T> ring_;                    // size 0 or a power of two
  std::map<std::uint64_t, T> stragglers_;  // all below base_ while the ring isn't empty
  // The ring holds [base_, base_ + length_); its first slot is in use. A length and not an end, because the end of the
  // highest number wraps. base_ means nothing while length_ is 0.
  std::uint64_t base_ = 0;
  std::uint64_t length_ = 0;
  std::size_t size_ = 0;
};

}  // namespace onay::core
