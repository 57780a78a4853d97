// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A binary min-heap of pointers whose elements know their place, so that any of them can be taken out in O(log n).
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

namespace onay::core {

// T has a member `std::uint32_t heap_index`; an element is in at most one heap. `Less(const T&, const T&)`.
template <class T, class Less>
class indexed_heap {
 public:
  static constexpr std::uint32_t nowhere = 0xffffffff;

  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  [[nodiscard]] T* top() const { return list_.empty() ? nullptr : list_.front(); }

  [[nodiscard]] const std::vector<T*>& elements() const { return list_; }  // in no order but that top is the first

  void push(T* element) {
    assert(element->heap_index == nowhere);
    list_.push_back(element);
    element->heap_index = std::uint32_t(list_.size() - 1);
    up(element->heap_index);
  }

  void remove(T* element) {
    const auto at = element->heap_index;
    assert(at < list_.size() && list_[at] == element);
    T* last = list_.back();
    list_.pop_back();
    element->heap_index = nowhere;
    if (last != element) {
      list_[at] = last;
      last->heap_index = at;
      up(at);
      down(last->heap_index);
    }
  }

 private:
  void up(std::uint32_t at) {
    while (at > 0) {
      const auto parent = (at - 1) / 2;
      if (!Less{}(*list_[at], *list_[parent])) {
        return;
      }
      swap_places(at, parent);
      at = parent;
    }
  }

  void down(std::uint32_t at) {
    for (;;) {
      auto least = at;
      for (auto child : {2 * at + 1, 2 * at + 2}) {
        if (child < list_.size() && Less{}(*list_[child], *list_[least])) {
          least = child;
        }
      }
      if (least == at) {
        return;
      }
      swap_places(at, least);
      at = least;
    }
  }

  void swap_places(std::uint32_t a, std::uint32_t b) {
    std::swap(list_[a], list_[b]);
    list_[a]->heap_index = a;
    list_[b]->heap_index = b;
  }

  std::vector<T*> list_;
};

}  // namespace onay::core
