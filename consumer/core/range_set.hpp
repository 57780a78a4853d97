// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A set of numbers as disjoint ranges, for what comes and goes in any order: the tags that are missing. Memory follows
// the number of gaps, not the span. `ranges` is its form on the wire.
#pragma once

#include "core/ranges.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>

namespace onay::core {

class range_set {
 public:
  // Adds [first, last]; merges with what it overlaps or touches.
  void insert(range r) {
    assert(r.first <= r.last);
    auto it = by_first_.upper_bound(r.first);
    if (it != by_first_.begin() && touches(std::prev(it)->second, r.first)) {
      --it;
      r.first = it->first;
    }
    while (it != by_first_.end() && touches(r.last, it->first)) {
      if (it->second > r.last) {
        r.last = it->second;
      }
      values_ -= it->second - it->first + 1;
      it = by_first_.erase(it);
    }
    by_first_.emplace_hint(it, r.first, r.last);
    values_ += r.last - r.first + 1;
  }
  void insert(std::uint64_t value) { insert(range{value, value}); }

  // False if it wasn't there. May split a range in two.
  bool erase(std::uint64_t value) {
    auto it = holder(value);
    if (it == by_first_.end()) {
      return false;
    }
    const auto [first, last] = *it;
    if (value < last) {
      by_first_.emplace_hint(std::next(it), value + 1, last);
    }
    if (first < value) {
      it->second = value - 1;
    } else {
      by_first_.erase(it);
    }
    --values_;
    return true;
  }

  void clear() {
    by_first_.clear();
    values_ = 0;
  }

  [[nodiscard]] bool contains(std::uint64_t value) const {
    auto it = by_first_.upper_bound(value);
    return it != by_first_.begin() && std::prev(it)->second >= value;
  }
  [[nodiscard]] bool empty() const { return by_first_.empty(); }
  // Wraps to 0 for the set of all 2^64 numbers; nobody needs that one.
  [[nodiscard]] std::uint64_t value_count() const { return values_; }
  [[nodiscard]] std::size_t range_count() const { return by_first_.size(); }
  // Only when not empty.
  [[nodiscard]] std::uint64_t lowest() const {
    assert(!empty());
    return by_first_.begin()->first;
  }

  // visit(range), rising.
  template <class F>
  void for_each(F&& visit) const {
    for (const auto& [first, last] : by_first_) {
      visit(range{first, last});
    }
  }

  [[nodiscard]] ranges as_ranges() const {
    ranges result;
    result.reserve(by_first_.size());
    for_each([&](range r) { result.append(r); });
    return result;
  }

 private:
  // A range ending at `last` and one starting at `first` (the lower one first) are one range.
  static bool touches(std::uint64_t last, std::uint64_t first) {
    return last == std::numeric_limits<std::uint64_t>::max() || first <= last + 1;
  }

  std::map<std::uint64_t, std::uint64_t>::iterator holder(std::uint64_t value) {
    auto it = by_first_.upper_bound(value);
    if (it == by_first_.begin() || std::prev(it)->second < value) {
      return by_first_.end();
    }
    return std::prev(it);
  }

  std::map<std::uint64_t, std::uint64_t> by_first_;  // first -> last; disjoint, never adjacent
  std::uint64_t values_ = 0;
};

}  // namespace onay::core
