// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// One attempt, as the worker, the handler's delivery and context, and the I/O thread share it. A synchronous worker has
// one of these for its whole life and begins it anew for each delivery; an asynchronous delivery has its own, which it
// keeps alive, also beyond the consumer.
#pragma once

#include "core/consumer_core.hpp"
#include "shell/mailbox.hpp"
#include "shell/wake.hpp"
#include "shell/work_queue.hpp"

#include <onay/delivery.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace onay::shell {

struct run;

// What workers, runs and the I/O thread share. Outlives the consumer as long as an asynchronous delivery does.
struct workshop {
  workshop(std::size_t capacity, std::size_t permits) : queue(capacity, permits), ends(bell) {}

  wake bell;  // of the I/O thread
  work_queue queue;
  mailbox<core::run_end> ends;
  std::atomic<bool> hold{false};  // nothing starts: paused or draining

  // The runs that the I/O thread looks at. An asynchronous one leaves before its end is posted, so that no delivery is
  // found here which the core has forgotten.
  std::mutex runs_mutex;
  std::vector<run*> runs;
  void add(run& r);
  void remove(run& r);
};

struct run : std::enable_shared_from_this<run> {
  explicit run(std::shared_ptr<workshop> w, bool asynchronous) : home(std::move(w)), async(asynchronous) {}

  const std::shared_ptr<workshop> home;
  const bool async;
  std::size_t index = 0;  // in home->runs; guarded by its mutex

  // --- the worker ---
  // From here on the I/O thread can see it; whether it may start must be asked after that.
  void begin(core::held* d);
  // It starts now.
  void start(time_point now) { started_at.store(now.time_since_epoch().count(), std::memory_order_release); }
  void end() { current.store(nullptr, std::memory_order_release); }
  [[nodiscard]] static delivery make_delivery(run& r) { return delivery(&r); }
  [[nodiscard]] context make_context(time_point deadline) { return {shared_from_this(), attempt, born, deadline}; }
  void rewrite(context& c, time_point deadline) const {
    c.attempt_ = attempt;
    c.born_ = born;
    c.deadline_ = deadline;
  }

  // --- the handler's threads ---
  void settle(outcome o);  // asynchronous only; the first call counts
  void drop();             // the delivery was destroyed unsettled
  [[nodiscard]] std::stop_token token();
  [[nodiscard]] bool stopped() const { return fired.load(std::memory_order_acquire); }

  // --- the I/O thread ---
  struct sight {
    core::held* delivery = nullptr;  // null: none has started
    time_point since{};
  };
  [[nodiscard]] sight look() const;
  std::int64_t reported = 0;  // the start that was reported to the core last

  // What it works on, started or not. Only a hint unless `generation_of` agrees.
  [[nodiscard]] core::held* now_at() const { return current.load(std::memory_order_acquire); }

  // --- whoever fires stop tokens ---
  // Names the attempt that works on `d` now; nothing if none does.
  [[nodiscard]] std::optional<std::uint64_t> generation_of(const core::held* d);
  void fire(std::uint64_t of_generation);

  // Of this attempt: fixed between begin and end.
  std::string_view key, headers, payload;
  message_id id;
  std::uint32_t attempt = 1;
  time_point born{};
  std::shared_ptr<const void> buffer;  // asynchronous: keeps the views alive; otherwise the core does
  core::held* held = nullptr;          // a name, never read after the start

  // Asynchronous.
  std::shared_ptr<run> self;  // the delivery's hold on this
  std::atomic<bool> ended{false};
  bool thrown_out = false;  // destroyed by what the handler threw; the worker's thread only

 private:
  std::atomic<core::held*> current{nullptr};
  std::atomic<std::int64_t> started_at{0};  // 0: begun, not started
  std::mutex stop_mutex;
  std::uint64_t generation = 0;            // guarded by stop_mutex, like `source`
  std::optional<std::stop_source> source;  // made when somebody asks
  std::atomic<bool> fired{false};
};

// Marks the asynchronous handler call on this thread, so that a delivery destroyed by an exception leaves its verdict
// to whoever catches that.
class calling {
 public:
  explicit calling(run& r);
  ~calling();
  calling(const calling&) = delete;
  calling& operator=(const calling&) = delete;
};

}  // namespace onay::shell
