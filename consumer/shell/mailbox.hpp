// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What other threads hand to an I/O thread. A mutex around a vector that the reader swaps: a post is an uncontended
// lock and a move, and a busy reader takes hundreds at once. A lock-free ring was rejected: its bound would have to be
// decided here, while the bounds are the callers' (unsettled messages, dispatched deliveries).
#pragma once

#include "shell/wake.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace onay::shell {

template <class T>
class mailbox {
 public:
  explicit mailbox(wake& reader) : wake_(reader) {}

  // Any thread. False if it is closed; the item is gone then. The reader is signalled only if it sleeps.
  bool post(T item) {
    bool asleep = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) {
        return false;
      }
      items_.push_back(std::move(item));
      asleep = std::exchange(asleep_, false);
    }
    if (asleep) {
      wake_.signal();
    }
    return true;
  }

  // The reader. Replaces `out` (whose capacity is reused); false if there was nothing.
  bool take(std::vector<T>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    asleep_ = false;
    items_.swap(out);
    return !out.empty();
  }

  // The reader, before it sleeps. False if something has come meanwhile; otherwise the next post signals.
  bool sleep() {
    const std::lock_guard lock(mutex_);
    asleep_ = items_.empty();
    return asleep_;
  }

  // What is in it is dropped, and so is what comes later.
  void close() {
    std::vector<T> dropped;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    items_.swap(dropped);
  }

 private:
  wake& wake_;
  std::mutex mutex_;
  std::vector<T> items_;  // guarded by mutex_, like the rest
  bool asleep_ = false;
  bool closed_ = false;
};

}  // namespace onay::shell
