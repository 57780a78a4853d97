// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/work_queue.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <utility>

namespace onay::shell {

work_queue::work_queue(std::size_t capacity, std::size_t permits)
    : permits_max_(permits), ring_(capacity), permits_(permits) {}

void work_queue::push(std::span<core::held* const> deliveries) {
  std::size_t wake = 0;
  {
    const std::lock_guard lock(mutex_);
    if (size_ + deliveries.size() > ring_.size()) {
      std::abort();  // the core has dispatched more than it may: a bug, and losing one in silence would be worse
    }
    for (auto* d : deliveries) {
      ring_[(first_ + size_) % ring_.size()] = d;
      ++size_;
    }
    wake = std::min({deliveries.size(), idle_, permits_});
  }
  for (; wake > 0; --wake) {
    changed_.notify_one();
  }
}

void work_queue::reclaim(std::vector<core::held*>& out) {
  out.clear();
  const std::lock_guard lock(mutex_);
  for (; size_ > 0; --size_) {
    out.push_back(ring_[first_]);
    first_ = (first_ + 1) % ring_.size();
  }
}

core::held* work_queue::take(bool give_back) {
  std::unique_lock lock(mutex_);
  permits_ += give_back ? 1 : 0;
  while (!closed_ && (size_ == 0 || permits_ == 0)) {
    ++idle_;
    changed_.wait(lock);
    --idle_;
  }
  if (closed_) {
    return nullptr;
  }
  auto* d = std::exchange(ring_[first_], nullptr);
  first_ = first_ + 1 == ring_.size() ? 0 : first_ + 1;
  --size_;
  --permits_;
  return d;
}

void work_queue::give_back() {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    ++permits_;
    assert(permits_ <= permits_max_);
    wake = size_ > 0 && idle_ > 0;
  }
  if (wake) {
    changed_.notify_one();
  }
}

void work_queue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

std::size_t work_queue::running() const {
  const std::lock_guard lock(mutex_);
  return permits_max_ - permits_;
}

}  // namespace onay::shell
