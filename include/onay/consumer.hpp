// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// The end that processes deliveries and settles them.
#pragma once

#include <onay/delivery.hpp>
#include <onay/endpoint.hpp>
#include <onay/error.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace zmq {
class context_t;
}

namespace onay {

namespace shell {
struct access;
}

/// Whether the handler may be repeated when it is unknown if its effect happened. There is no default: only the
/// application knows.
enum class idempotence {
  unstated,        ///< refused at construction
  idempotent,      ///< repeating an attempt whose outcome is unknown does no harm
  not_idempotent,  ///< never repeated then: dead-lettered `outcome_unknown`. Every start waits for the sender's word.
};

/// Where condemned messages go.
struct dead_letter_to {
  endpoint where;  ///< must differ from every source endpoint
};
/// They are dropped, counted, and the sender is told that they are buried. Spelled out, because it loses data.
struct discard {};
/// This consumer *is* a dead-letter collector: it never condemns. No attempt or age limit applies; a failed letter is
/// tried again for ever.
struct collect {};

/// Exponential backoff with full jitter: the n-th retry waits random(0, min(cap, base * 2^(n-1))).
/// Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
struct backoff_options {
  duration base = std::chrono::milliseconds(100);  ///< at least 1 us, at most `cap`
  duration cap = std::chrono::seconds(30);         ///< at most 24 h
  bool jitter = true;                              ///< off: exactly the bound, for tests; herds of retries collide
  /// A Retry-After above it is cut to it. Without a limit it is obeyed up to the message's time left.
  limit<duration> retry_after_cap = no_limit;
};

/// Durations are positive unless said otherwise; a value outside its range is refused by the constructor.
struct consumer_options {
  std::vector<endpoint> endpoints = {};                                              ///< sources, at least one
  idempotence handler = idempotence::unstated;                                       ///< required
  std::variant<std::monostate, dead_letter_to, discard, collect> dead_letters = {};  ///< required

  /// Names this consumer to its peers; a random one when empty. At most 255 bytes. A restarted worker that keeps its
  /// name gets its predecessor's messages back without waiting for the lease.
  std::string logical_id = {};

  /// Handlers that may run at once, synchronous and asynchronous alike (a permit each). 0 is refused; the default is
  /// the number of processors. At most 4096.
  std::uint32_t concurrency = 0xffffffff;
  std::uint32_t credit_max = 1'024;           ///< messages held at once, at least `concurrency`; at most 1 M
  byte_size credit_bytes_max = {64U << 20U};  ///< their bytes; at least one largest message
  /// Messages stay at their sender (`undeliverable`) when key, headers and payload together take more than this and
  /// 64 KiB + 255 bytes. At most 1 GiB.
  byte_size payload_max = {8U << 20U};
  limit<std::uint32_t> attempts_max = 5U;  ///< handler starts per message over all its consumers, at least 1
  duration attempt_timeout = std::chrono::seconds(30);         ///< the stop token fires; less than `age_max`
  limit<duration> age_max = duration(std::chrono::hours(24));  ///< older messages are condemned without a start
  /// Settles a handler that ignored its stop token for this long as a counted, uncertain retry, although it still runs:
  /// **two runs of one key may then overlap**. Off by default.
  limit<duration> abandon_after = no_limit;
  backoff_options backoff = {};
  bool unclassified_is_transient = false;  ///< what a handler throws is `permanent` unless this is set

  /// Operation keys remembered; confirmed ones make room, oldest first. A sender whose unconfirmed keys fill half of it
  /// gets no more credit until it confirms some.
  std::uint32_t inbox_max = 1'000'000;
  byte_size result_max = {64U << 10U};     ///< a handler's result; at most 8 MiB
  std::uint32_t dead_letters_max = 1'024;  ///< condemned messages being buried at once; others wait at their sender

  std::size_t io_threads = 1;  ///< of the ZeroMQ context made when none is handed in; 1 to 16
};

/// Why no handler is starting, when none is. Several may hold; the first in this order is told.
enum class idle_reason {
  busy,  ///< it isn't idle: handlers run, or there is work for a free slot
  stopped,
  draining,
  paused,
  not_connected,   ///< no session with any sender; see `refused`
  stuck_handlers,  ///< every slot is held by a handler past its timeout
  inbox_full,      ///< no free record: nothing is confirmed
  awaiting_start,  ///< deliveries wait for a sender's confirmation of their start
  no_messages,     ///< the senders have nothing due
};
[[nodiscard]] std::string_view to_string(idle_reason) noexcept;

/// A snapshot; sums are consistent with each other.
struct consumer_status {
  idle_reason why_idle = idle_reason::stopped;
  std::uint64_t queued = 0, running = 0, stuck = 0, waiting_for_key = 0, burying = 0, unconfirmed = 0;
  std::uint64_t held_bytes = 0;
  std::uint64_t starts = 0, accepted = 0, retried = 0, released = 0, rejected = 0, buried = 0;
  std::uint64_t duplicates = 0;       ///< deliveries answered from the inbox without a start
  std::uint64_t lost_leases = 0;      ///< sessions that ended here
  std::uint64_t bad_frames = 0;       ///< unreadable or out of place, answered with an error
  std::uint64_t malformed = 0;        ///< documents rejected as such
  std::uint64_t results_dropped = 0;  ///< results above `result_max`
  std::uint64_t inbox_records = 0, inbox_pinned = 0;
  std::uint64_t by_error_class[7] = {};  ///< failed attempts, indexed by `error_class`
  std::string refused;                   ///< a sender's words when it refuses this consumer ("identity in use")
  /// The dead-letter collector is there; always false without `dead_letter_to`. While it isn't, condemned messages wait
  /// at their senders and are offered here again and again (`released`).
  bool collector_connected = false;
  std::string refused_by_collector;  ///< its words when it refuses this consumer; empty otherwise
};

/// What a stop left behind.
struct stop_report {
  bool clean = false;          ///< `error` is empty and nothing is left unknown: settlements confirmed, no handler runs
  std::uint64_t settled = 0;   ///< during the drain
  std::uint64_t released = 0;  ///< handed back unstarted, no attempt counted
  std::uint64_t running = 0;   ///< handlers that still run; their attempt will be charged
  std::uint64_t unconfirmed = 0;   ///< settlements that the senders had not confirmed
  std::uint64_t dead_letters = 0;  ///< letters under way that the collector had not confirmed; their senders hold them
  std::string error;               ///< why it stopped by itself ("identity in use"); empty if it was asked to
};

using handler = std::function<outcome(const delivery&, context&)>;
/// Owns the delivery and settles it later; must return soon, because it occupies one of the consumer's threads.
using async_handler = std::function<void(delivery, context)>;

/// The downstream end of a link: gets deliveries, runs the handler, settles.
///
/// @code
///   onay::consumer worker({.endpoints = {onay::connect("tcp://127.0.0.1:5555")},
///                          .handler = onay::idempotence::idempotent,
///                          .dead_letters = onay::dead_letter_to{onay::connect("tcp://127.0.0.1:5556")}},
///                         [](const onay::delivery& d, onay::context&) { return onay::accept(ship(d.payload())); });
///   worker.run();
/// @endcode
///
/// Delivery guarantee: the sender hears `accept` only after the handler returned and the inbox has the key. The inbox
/// lives in memory: separate workers have separate ones, and it dies with the process, so an effect can happen twice
/// when a worker dies or a message moves to another. No order is promised.
///
/// Handlers: run on `concurrency` threads of the consumer (an asynchronous consumer uses at most one per processor).
/// Anything they throw is caught and is a failure of class `permanent` (`uncertain` once the stop token has fired). A
/// run past its timeout that ends as `transient` or `overload` counts as `uncertain`: it was cut short in the middle.
///
/// Thread safety: all members from any thread, `stop` also from inside a handler (it then returns at once, and the
/// drain goes on behind it). May be destroyed in any state, also from inside its own handler: that handler then runs to
/// its end, its outcome may come too late to be told, and the threads end behind it.
/// Errors: the constructor throws `configuration_error` or `setup_error`; later outcomes are values.
class consumer {
 public:
  /// Makes its own ZeroMQ context.
  consumer(consumer_options options, onay::handler handle);
  consumer(consumer_options options, async_handler handle);
  /// Uses the caller's context, which must outlive the consumer.
  consumer(zmq::context_t& context, consumer_options options, onay::handler handle);
  consumer(zmq::context_t& context, consumer_options options, async_handler handle);
  /// A handler that owns its delivery settles it and returns nothing; what this one returns would be lost.
  template <class F>
  requires std::is_invocable_r_v<outcome, F&, delivery, context> &&
      (!std::is_invocable_v<F&, const delivery&, context&>)consumer(consumer_options options, F handle) = delete;
  template <class F>
  requires std::is_invocable_r_v<outcome, F&, delivery, context> &&
      (!std::is_invocable_v<F&, const delivery&, context&>)consumer(zmq::context_t& context, consumer_options options,
                                                                    F handle) = delete;
  /// Stops with a deadline of zero if it still runs, and then waits for running handlers: threads can't be killed.
  ~consumer();
  consumer(const consumer&) = delete;
  consumer& operator=(const consumer&) = delete;

  /// `start`, wait until it is stopped, and say what was left.
  stop_report run();
  /// Returns once the I/O thread runs. No effect when started already; a stopped consumer isn't started again.
  void start();
  /// Takes no new deliveries, lets running handlers finish, hands back what never started, waits for the senders'
  /// confirmations: at most `deadline` (default 30 s) in all. Idempotent; later calls wait for the first one's report.
  stop_report stop(duration deadline = std::chrono::seconds(30));
  /// Starts a stop without waiting for its end. Async-signal-unsafe; see `stop_on_signals`.
  void request_stop(duration deadline = std::chrono::seconds(30));

  /// Starts no further handler until `resume`; leases, settlements and running handlers go on.
  void pause();
  void resume();

  [[nodiscard]] consumer_status status() const;
  /// The addresses that are bound, with the real port where "*" was asked for; connected ones as given. In the order of
  /// `endpoints`, that of the dead-letter endpoint last.
  [[nodiscard]] std::vector<std::string> addresses() const;

 private:
  friend struct shell::access;
  class impl;
  explicit consumer(std::shared_ptr<impl> i);
  std::shared_ptr<impl> impl_;  // shared with its threads
};

/// Stops a consumer when the process gets SIGINT or SIGTERM: a drain with `deadline`; a second signal cuts the drain
/// short. Opt-in; one at a time per process (a second one throws `setup_error`). The previous handlers are restored by
/// the destructor. Make it before other threads start, and declare it after the consumer, so that it goes first.
class stop_on_signals {
 public:
  explicit stop_on_signals(consumer& target, duration deadline = std::chrono::seconds(30));
  ~stop_on_signals();
  stop_on_signals(const stop_on_signals&) = delete;
  stop_on_signals& operator=(const stop_on_signals&) = delete;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace onay
