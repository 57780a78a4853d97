// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Sets of tags as sorted, disjoint, closed ranges: what heartbeats and settlements carry. A bitmap was rejected: a
// stuck handler can spread the named tags over millions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace onay::core {

struct range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive, >= first
  friend bool operator==(const range&, const range&) = default;
};

// Sorts, and drops repetitions. Tags mostly come in order.
inline void sort_unique(std::vector<std::uint64_t>& values) {
  if (std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end()) {
    return;
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

class ranges {
 public:
  ranges() = default;
  ranges(std::initializer_list<range> rs) : list_(rs) {}

  // Appends a value; values must come in rising order.
  void append(std::uint64_t value) { append({value, value}); }

  // Appends a range that lies above everything so far; merges with an adjacent one.
  void append(range r) {
    if (!list_.empty() && list_.back().last + 1 == r.first) {
      list_.back().last = r.last;
    } else {
      list_.push_back(r);
    }
  }

  // From values in any order, without repetitions. Sorts `values` in place.
  static ranges from(std::vector<std::uint64_t>& values) {
    if (!std::is_sorted(values.begin(), values.end())) {
      std::sort(values.begin(), values.end());
    }
    ranges result;
    for (auto v : values) {
      result.append(v);
    }
    return result;
  }

  [[nodiscard]] bool contains(std::uint64_t value) const {
    auto it = std::upper_bound(list_.begin(), list_.end(), value,
                               [](std::uint64_t v, const range& r) { return v < r.first; });
    return it != list_.begin() && std::prev(it)->last >= value;
  }

  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t range_count() const { return list_.size(); }
  [[nodiscard]] const std::vector<range>& list() const { return list_; }
  void clear() { list_.clear(); }
  void reserve(std::size_t n) { list_.reserve(n); }

  friend bool operator==(const ranges&, const ranges&) = default;

 private:
  std::vector<range> list_;
};

}  // namespace onay::core
