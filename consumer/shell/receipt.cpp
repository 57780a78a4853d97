// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/clock.hpp"
#include "shell/receipt_state.hpp"

#include <onay/receipt.hpp>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace onay {

namespace shell {

namespace {

// A mutex and a condition variable for each receipt would cost more than the rest of it. Shared ones only cost a few
// needless wake-ups of threads that wait for another receipt of the same stripe.
struct alignas(64) stripe {
  std::mutex mutex;
  std::condition_variable changed;
};

stripe& stripe_of(const receipt_state* r) {
  // Never destroyed: a receipt may outlive everything else in the process.
  static auto& stripes = *new std::array<stripe, 64>;
  const auto address = reinterpret_cast<std::uintptr_t>(r);
  return stripes[(address >> 5U ^ address >> 12U) % stripes.size()];
}

const settled_message& plain_accept() {
  static const auto& m = *new settled_message{final_state::accepted, {}, reason::none, {}};
  return m;
}

// False if it threw.
bool run_one(const receipt_state::callback& c, const settled_message& m) {
  try {
    c(m);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

receipt_state::~receipt_state() {
  const auto* m = outcome_.load(std::memory_order_acquire);
  if (m != &plain_accept()) {
    delete m;
  }
}

bool receipt_state::finish_plain() { return publish(&plain_accept()); }
bool receipt_state::finish(std::unique_ptr<settled_message> m) { return publish(m.release()); }

bool receipt_state::publish(const settled_message* m) {
  // Either this thread sees `watched_`, or the watcher sees the outcome: both are sequentially consistent.
  outcome_.store(m);
  if (!watched_.load()) {
    return false;
  }
  auto& s = stripe_of(this);
  const std::lock_guard lock(s.mutex);
  s.changed.notify_all();
  return callbacks_ != nullptr;
}

const settled_message* receipt_state::wait() { return wait_until(std::chrono::steady_clock::time_point::max()); }

const settled_message* receipt_state::wait_until(std::chrono::steady_clock::time_point end) {
  if (const auto* m = poll()) {
    return m;
  }
  watched_.store(true);
  auto& s = stripe_of(this);
  std::unique_lock lock(s.mutex);
  const auto known = [&] { return outcome_.load() != nullptr; };
  if (end == std::chrono::steady_clock::time_point::max()) {
    s.changed.wait(lock, known);
  } else {
    s.changed.wait_until(lock, end, known);
  }
  return outcome_.load();
}

void receipt_state::add_callback(callback c) {
  {
    watched_.store(true);
    const std::lock_guard lock(stripe_of(this).mutex);
    // While earlier ones wait for their thread, a later one queues behind them.
    if (outcome_.load() == nullptr || callbacks_ != nullptr) {
      auto* end = &callbacks_;
      while (*end != nullptr) {
        end = &(*end)->next;
      }
      *end = std::make_unique<registered>(registered{std::move(c), nullptr});
      return;
    }
  }
  (void)run_one(c, *poll());
}

std::uint64_t receipt_state::run_callbacks() {
  std::uint64_t failed = 0;
  auto& s = stripe_of(this);
  std::unique_lock lock(s.mutex);
  while (callbacks_ != nullptr) {
    const auto& first = *callbacks_;
    lock.unlock();
    failed += run_one(first.call, *poll()) ? 0 : 1;
    lock.lock();
    auto done = std::exchange(callbacks_, std::move(callbacks_->next));
    lock.unlock();
    done = nullptr;  // what it has captured may do anything when it goes
    lock.lock();
  }
  return failed;
}

}  // namespace shell

const settled_message* receipt::poll() const noexcept { return state_->poll(); }

const settled_message& receipt::wait() const { return *state_->wait(); }

const settled_message* receipt::wait_for(duration timeout) const {
  return state_->wait_until(shell::steady_after(timeout));
}

void receipt::on_settled(std::function<void(const settled_message&)> callback) const {
  state_->add_callback(std::move(callback));
}

}  // namespace onay
