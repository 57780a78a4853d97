// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// From the I/O thread to the workers: deliveries in order, and a permit for each handler that may run. Both under one
// lock, so that a worker between two deliveries takes it once.
#pragma once

#include "core/consumer_core.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace onay::shell {

class work_queue {
 public:
  // Holds at most `capacity` deliveries: what the core may dispatch beyond the running ones.
  work_queue(std::size_t capacity, std::size_t permits);

  // --- the I/O thread ---
  // Adds them in this order. There must be room.
  void push(std::span<core::held* const> deliveries);
  // Takes back what no worker has taken yet.
  void reclaim(std::vector<core::held*>& out);

  // --- workers ---
  // Waits for a delivery and a permit, and takes both. `give_back`: returns the permit of the last one first. Null once
  // the queue is closed.
  core::held* take(bool give_back);

  // --- any thread ---
  void give_back();  // a permit
  void close();
  [[nodiscard]] std::size_t running() const;  // permits in use

 private:
  const std::size_t permits_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<core::held*> ring_;  // guarded by mutex_, like the rest
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t permits_;
  std::size_t idle_ = 0;  // workers in changed_
  bool closed_ = false;
};

}  // namespace onay::shell
