// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The broker's side: a sender, the load, and what its receipts said.
#pragma once

#include "faults.hpp"
#include "load.hpp"
#include "receipts.hpp"

#include <onay/endpoint.hpp>
#include <onay/sender.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onay::sim {

class fault_filter;

struct upstream_settings {
  std::vector<endpoint> endpoints;
  std::string logical_id = "upstream";
  std::optional<duration> lease, heartbeat;  // heartbeat absent: a fifth of the lease, 1 s at most
  std::optional<duration> age_max;
  std::optional<std::uint32_t> unsettled;
  std::optional<std::uint64_t> unsettled_bytes;
  std::optional<endpoint> dead_letters;
  duration stall_max = std::chrono::minutes(2);  // gives up after this long without a receipt
  fault_options faults;
  time_point beginning{};  // what event times count from
};

enum class upstream_end {
  settled,      // every message has its receipt
  interrupted,  // somebody pressed Ctrl-C; what was sent is settled
  abandoned,    // Ctrl-C twice
  stalled,      // no receipt for `stall_max`
  failed,       // a message was refused, or the input ended early
};

class upstream {
 public:
  // Throws what the sender's constructor throws.
  upstream(upstream_settings settings, load& messages);
  ~upstream();

  // "tcp://127.0.0.1:41234" of what was bound.
  [[nodiscard]] std::vector<std::string> addresses() const;

  // Called often while `run` does: whether to stop. 0: go on, 1: no new messages, 2: now.
  using interruption = std::function<unsigned(const upstream&)>;
  // Sends everything and waits for the receipts.
  upstream_end run(const interruption& ask);
  // Closes the sender. After it the book is complete.
  void close(duration patience);

  [[nodiscard]] const receipt_book& book() const { return book_; }
  [[nodiscard]] sender_status status() const;
  [[nodiscard]] fault_counts faults() const;  // after `close`
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] time_point beginning() const { return settings_.beginning; }
  // When each message was sent, in ticks; only with an age limit.
  [[nodiscard]] const std::vector<std::uint32_t>& sent_at() const { return sent_at_; }
  // Whether that many consumers are connected.
  [[nodiscard]] bool has_peers(std::size_t count) const;

 private:
  bool send_one(const interruption& ask, unsigned& stop);
  bool stalled();

  upstream_settings settings_;
  load& load_;
  std::unique_ptr<fault_filter> filter_;
  receipt_book book_;
  std::unique_ptr<sender> sender_;
  std::optional<sender_status> last_status_;
  std::optional<fault_counts> faults_;
  std::vector<std::uint32_t> sent_at_;
  std::uint64_t settled_before_ = 0;
  time_point moved_at_{};
  std::string failure_;
};

}  // namespace onay::sim
