// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A thread for user code that must run neither on the I/O thread nor under a lock: receipts' callbacks, stop callbacks.
// It starts with the first item, because most senders and consumers never have one.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace onay::shell {

template <class T>
class side_thread {
 public:
  // `work` runs on the thread with what has come together, in order; it must not throw.
  explicit side_thread(std::function<void(std::vector<T>&)> work) : state_(std::make_shared<state>()) {
    state_->work = std::move(work);
  }
  // Runs what was posted, then ends. From its own thread: it ends behind us, and what it needs lives until then.
  ~side_thread() { finish(); }
  side_thread(const side_thread&) = delete;
  side_thread& operator=(const side_thread&) = delete;

  // Any thread. After `finish` the item is dropped. Takes all of `items` and leaves it empty.
  void post(std::vector<T>& items) {
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->ending) {
        start();
        for (auto& i : items) {
          state_->items.push_back(std::move(i));
        }
      }
    }
    items.clear();
    state_->changed.notify_all();
  }

  // Waits until everything posted so far has run; false if it hasn't at `end`.
  bool wait_idle(std::chrono::steady_clock::time_point end) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_until(lock, end, [&] { return state_->items.empty() && !state_->running; });
  }

  [[nodiscard]] bool is_this_thread() {
    const std::lock_guard lock(state_->mutex);
    return thread_.get_id() == std::this_thread::get_id();
  }

  void finish() {
    std::thread ending;
    {
      const std::lock_guard lock(state_->mutex);
      state_->ending = true;
      ending = std::move(thread_);
    }
    state_->changed.notify_all();
    if (!ending.joinable()) {
      return;
    }
    if (ending.get_id() == std::this_thread::get_id()) {
      ending.detach();
    } else {
      ending.join();
    }
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    std::function<void(std::vector<T>&)> work;  // set before the thread exists
    std::vector<T> items;                       // guarded by mutex, like the rest
    bool running = false;
    bool ending = false;
  };

  void start() {
    if (!thread_.joinable()) {
      thread_ = std::thread([s = state_] { run(*s); });
    }
  }

  static void run(state& s) {
    std::vector<T> batch;
    std::unique_lock lock(s.mutex);
    for (;;) {
      s.changed.wait(lock, [&] { return !s.items.empty() || s.ending; });
      if (s.items.empty()) {
        return;
      }
      batch.swap(s.items);
      s.running = true;
      lock.unlock();
      s.work(batch);
      batch.clear();
      lock.lock();
      s.running = false;
      s.changed.notify_all();
    }
  }

  std::shared_ptr<state> state_;  // shared with the thread, which may outlive this object
  std::thread thread_;            // guarded by state_->mutex
};

}  // namespace onay::shell
