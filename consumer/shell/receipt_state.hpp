// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The shared end of a receipt. There is one for every unsettled message, so it is small: with its control block 48
// bytes. What most receipts never need (an outcome with a result, callbacks) is allocated when it comes up, and waiting
// uses mutexes and condition variables that all receipts of the process share.
#pragma once

#include <onay/receipt.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace onay::shell {

struct receipt_state {
  using callback = std::function<void(const settled_message&)>;

  receipt_state() = default;
  ~receipt_state();
  receipt_state(const receipt_state&) = delete;
  receipt_state& operator=(const receipt_state&) = delete;

  static receipt handle_on(std::shared_ptr<receipt_state> s) { return receipt(std::move(s)); }

  // --- any thread ---
  [[nodiscard]] const settled_message* poll() const noexcept { return outcome_.load(std::memory_order_acquire); }
  const settled_message* wait_until(std::chrono::steady_clock::time_point end);
  const settled_message* wait();
  void add_callback(callback c);

  // --- the I/O thread, once ---
  // The commonest outcome, accepted without a result, is one static object. True if callbacks wait to be run.
  bool finish_plain();
  bool finish(std::unique_ptr<settled_message> m);

  // --- the callback thread ---
  // Runs them in the order of their registration, those added meanwhile too. Returns how many threw.
  std::uint64_t run_callbacks();

 private:
  bool publish(const settled_message* m);

  // Set once, never taken back. Either the static object or owned.
  std::atomic<const settled_message*> outcome_{nullptr};
  // Somebody waits or has waited, or has registered a callback: the finisher has to lock and notify.
  std::atomic<bool> watched_{false};
  // In the order of their registration; each stays until it has run. Nearly always one.
  struct registered {
    callback call;
    std::unique_ptr<registered> next;
  };
  std::unique_ptr<registered> callbacks_;  // guarded by this receipt's stripe
};

}  // namespace onay::shell
