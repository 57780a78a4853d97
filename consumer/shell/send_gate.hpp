// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Where application threads hand messages to a sender's I/O thread, and wait while its limits are reached. Room and
// mailbox share one lock, so a send takes it once.
#pragma once

#include "core/ledger.hpp"
#include "shell/wake.hpp"

#include <onay/sender.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace onay::shell {

class send_gate {
 public:
  struct submission {
    std::unique_ptr<core::stored_message> message;
    std::optional<duration> deadline;
  };
  using clock = std::chrono::steady_clock;

  send_gate(std::uint64_t messages_max, std::uint64_t bytes_max, wake& reader);

  // --- any thread ---
  // Takes room and hands the message over, in the order of the calls. Waits that long for room (nothing: for ever).
  // `none`, `would_block` or `closed`.
  send_error enter(submission&& s, std::optional<duration> timeout);
  // A zero timeout: no clock is read.
  send_error try_enter(submission&& s);
  // Later sends are refused, waiting ones too.
  void close();
  // Until nothing is unsettled; false if something is at `end`.
  bool wait_idle(clock::time_point end);
  // Gives room back. Whoever waits for it is woken when much has come together or the I/O thread has nothing to do:
  // woken for each message, a fast application would change threads for each.
  void leave(std::uint64_t messages, std::uint64_t bytes);
  // Takes all of these settled messages; the next sends free them.
  void discard(std::vector<std::unique_ptr<core::stored_message>>& removed);
  struct load {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] load look() const;

  // --- the I/O thread; see mailbox.hpp ---
  bool take(std::vector<submission>& out);
  bool sleep();

 private:
  [[nodiscard]] bool has_room(std::uint64_t bytes) const;
  send_error put(std::unique_lock<std::mutex>& lock, submission&& s);
  [[nodiscard]] bool worth_waking() const;

  const std::uint64_t messages_max_;
  const std::uint64_t bytes_max_;
  wake& wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // room, closed, idle
  std::vector<submission> items_;    // guarded by mutex_, like the rest
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t freed_messages_ = 0, freed_bytes_ = 0;  // since the last wake-up
  std::vector<std::unique_ptr<core::stored_message>> removed_;
  std::uint32_t waiting_ = 0;  // threads in changed_
  bool asleep_ = false;
  bool closed_ = false;
};

}  // namespace onay::shell
