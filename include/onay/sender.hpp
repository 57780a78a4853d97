// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// The upstream end: keeps each message until a consumer has processed **and then** acknowledged it.
#pragma once

#include <onay/endpoint.hpp>
#include <onay/error.hpp>
#include <onay/receipt.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zmq {
class context_t;
}

namespace onay {

namespace shell {
struct access;
}

/// Durations are positive unless said otherwise; a value outside its range is refused by the constructor.
struct sender_options {
  std::vector<endpoint> endpoints =
      {};  ///< at least one; messages go to whichever consumer has the largest free share of credit

  /// Names this sender to its peers; a random one when empty. At most 255 bytes. A name belongs to one live process: a
  /// second one is refused by the peers.
  std::string logical_id = {};

  /// How long a consumer may be silent before what it holds moves on. Longer: a dead consumer's messages wait longer.
  /// Shorter: a stalled network causes redeliveries (duplicates, which the inbox suppresses per worker). 40 ms to 1 h.
  duration lease = std::chrono::seconds(5);
  /// How often both ends repeat their state. At most a quarter of the lease, at least 10 ms.
  duration heartbeat = std::chrono::seconds(1);

  /// A message that has not been accepted by then is dead-lettered `too_old`; `message.deadline` may shorten it.
  limit<duration> age_max = duration(std::chrono::hours(24));
  std::uint32_t unsettled_max = 65'536;           ///< messages held; `send` waits at the limit
  byte_size unsettled_bytes_max = {256U << 20U};  ///< key + headers + payload of those; at least one message fits
  std::uint32_t parked_max = 16'384;     ///< retries waiting for their delay; at the limit no fresh message leaves
  byte_size payload_max = {8U << 20U};   ///< larger ones are refused by `send`; at most 1 GiB
  byte_size headers_max = {64U << 10U};  ///< headers with their encoding, at most 16 MiB

  /// Where this sender takes messages that no connected consumer can bury (none has a dead-letter endpoint, or the
  /// message is larger than all of them take). Without it such messages stay, counted as `overdue` or `undeliverable`.
  std::optional<endpoint> dead_letters = {};

  std::size_t io_threads = 1;  ///< of the ZeroMQ context this sender makes when none is handed in; 1 to 16
};

/// One peer, as `status` shows it.
struct peer_status {
  std::string logical_id;
  std::string endpoint;
  bool connected = false;         ///< false: lost or not yet met; its lease may still run
  std::uint64_t held = 0;         ///< deliveries it holds
  std::uint64_t credit_left = 0;  ///< messages that may still be handed over
};

/// A snapshot; sums are consistent with each other.
struct sender_status {
  std::uint64_t sent = 0, accepted = 0, dead_lettered = 0, joined = 0, refused = 0;  ///< since construction
  std::uint64_t first_attempt_successes = 0;                                         ///< accepted on attempt 1
  std::uint64_t successes_after_retry = 0;                                           ///< accepted on a later attempt
  std::uint64_t unsettled = 0;  ///< held now = ready + delivered + parked
  std::uint64_t unsettled_bytes = 0;
  std::uint64_t ready = 0, delivered = 0, parked = 0;
  std::uint64_t condemned = 0;      ///< of the unsettled ones: rejected, their dead letter isn't confirmed
  std::uint64_t overdue = 0;        ///< past their limit and no connected consumer can bury them
  std::uint64_t undeliverable = 0;  ///< larger than every connected consumer takes
  std::uint64_t redeliveries = 0;   ///< deliveries beyond each message's first, copies of lost frames not counted
  std::uint64_t resent_copies = 0;  ///< copies of frames that a link lost
  std::uint64_t peers_lost = 0, late_accepts = 0, stale_verdicts = 0;
  std::uint64_t bad_frames = 0;  ///< unreadable or out of place, answered with an error
  std::uint64_t callback_failures = 0;
  std::vector<peer_status> peers;
  std::string refused_by_peer;  ///< a peer's words when it refuses this sender ("identity in use"); empty otherwise
};

/// What `close` left behind.
struct close_report {
  bool clean = false;         ///< every message was settled
  std::uint64_t unknown = 0;  ///< receipts that ended as `unknown`
};

enum class send_error {
  none,
  would_block,   ///< a limit is reached (`try_send`), or still was at the timeout
  closed,        ///< `close` was called
  missing_key,   ///< the operation key is empty
  key_too_long,  ///< above 255 bytes
  too_large,     ///< payload or headers above their limit
  bad_deadline,  ///< zero or negative
};
[[nodiscard]] std::string_view to_string(send_error) noexcept;

/// A receipt, or why there is none. Ignoring it loses the error, hence nodiscard.
struct [[nodiscard]] send_result {
  receipt ticket;  ///< valid exactly if `error` is `none`
  send_error error = send_error::none;
  explicit operator bool() const { return error == send_error::none; }
  /// Shorthand for `ticket`.
  const receipt* operator->() const { return &ticket; }
};

/// The upstream end of a link.
///
/// @code
///   onay::sender orders({.endpoints = {onay::bind("tcp://127.0.0.1:5555")}});
///   auto sent = orders.send({.key = onay::operation_key(order_id), .payload = body});
///   if (sent && sent->wait().state == onay::final_state::accepted) ...
/// @endcode
///
/// Delivery guarantee: a message that `send` took ends accepted, or dead-lettered and confirmed; it may be *delivered*
/// more than once. Messages are kept in memory: they die with this process. No order is promised.
///
/// Joining: a `send` whose key belongs to an unsettled message joins that message (same outcome, sent once); with
/// another payload it is refused through its receipt (`settled_message::refused`). Headers and deadline of the one that
/// joins are ignored. Once the first is settled, another payload under its key is delivered, and dead-lettered as
/// `key_conflict` by a consumer that still remembers the key.
///
/// Thread safety: all members from any thread. Threads: one I/O thread, and one for callbacks once there is any.
/// Errors: the constructor throws `configuration_error` or `setup_error`; later outcomes are values.
class sender {
 public:
  /// Makes its own ZeroMQ context.
  explicit sender(sender_options options);
  /// Uses the caller's context, which must outlive the sender.
  sender(zmq::context_t& context, sender_options options);
  /// Closes without waiting: what is unsettled ends as `unknown`. Call `close` first for more.
  ~sender();
  sender(const sender&) = delete;
  sender& operator=(const sender&) = delete;

  /// Takes a copy of a message; waits while a limit is reached, at the longest until `close`.
  send_result send(const message& m);
  /// The same, waiting at most `timeout` (zero doesn't wait).
  send_result send_for(const message& m, duration timeout);
  /// The same without waiting.
  send_result try_send(const message& m) { return send_for(m, duration::zero()); }

  /// Waits until nothing is unsettled, at most `timeout`. True if nothing is.
  bool wait_idle(duration timeout);

  /// Refuses new messages at once, waits at most `deadline` for the unsettled ones, says good-bye to the peers and ends
  /// the remaining receipts as `unknown`. Idempotent; later calls return the first report. Not from a callback.
  close_report close(duration deadline);

  [[nodiscard]] sender_status status() const;
  /// The addresses that are bound, with the real port where "*" was asked for; connected ones as given.
  [[nodiscard]] std::vector<std::string> addresses() const;

 private:
  friend struct shell::access;
  class impl;
  explicit sender(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace onay
