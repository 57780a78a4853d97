// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The consumer's end of the protocol, as decisions: what to admit, what to start and when, what an outcome means, how
// much credit to grant, how to leave. No threads, sockets, files, clocks, entropy.
//
// Use: call inputs with `now`; then `flush(now)`; then take the outputs (`frames`, `dispatch`, `stops`, `burials`);
// then wait until `next_deadline()` or the next input. Timers are judged by `handle_time`, after waiting input was
// read.
#pragma once

#include "core/decision.hpp"
#include "core/frames.hpp"
#include "core/inbox.hpp"
#include "core/instant.hpp"
#include "core/links.hpp"
#include "core/pulse.hpp"
#include "core/range_set.hpp"
#include "core/sequence_table.hpp"

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onay::core {

enum class burial : std::uint8_t {
  dead_letter_link,  // to the collector
  discard,           // buried at once
  nowhere,           // this consumer is a collector: it never condemns, everything is tried again
};

struct consumer_config {
  std::string logical_id;
  std::uint64_t instance = 0;  // random per life
  std::uint64_t hash_seed = 0;
  retry_policy retry;  // attempts_max, backoff, idempotence
  burial bury = burial::dead_letter_link;
  std::uint32_t concurrency = 1;
  std::uint32_t dispatch_ahead = 0;  // deliveries beyond `concurrency` that wait in the workers' queue
  std::uint32_t credit_max = 1024;
  std::uint64_t credit_bytes_max = 64U << 20U;
  std::uint64_t largest_message = 8U << 20U;  // key + headers + payload
  std::uint32_t inbox_max = 1'000'000;
  std::uint32_t dead_letters_max = 1024;
  std::uint64_t result_max = 64U << 10U;
  duration attempt_timeout = std::chrono::seconds(30);
  std::optional<duration> age_max = std::chrono::hours(24);
  std::optional<duration> abandon_after;
  duration hello_interval = std::chrono::seconds(1);
};

struct consumer_session;

// One delivery while this consumer has it. Owned by the core; the pointer is its name for the shell, valid from
// `dispatch` (or `burials`) until the shell has reported its end.
struct held {
  // --- fixed at admission; workers read these while it is dispatched ---
  std::string_view key;
  std::string_view headers;  // encoded
  std::string_view payload;
  message_id id;
  std::uint32_t attempt = 1;
  time_point born{};  // now - age
  time_point limit = never;
  // The session's end of the lease, in microseconds of the boot clock: nothing starts after it. Outlives the dispatch.
  const std::atomic<std::int64_t>* startable_until = nullptr;
  std::shared_ptr<const void> buffer;  // keeps the views alive

  // --- the core's ---
  enum class stage : std::uint8_t { free, queued, waiting, asking, dispatched, running, rejecting, burying, abandoned };
  stage at = stage::free;
  std::uint8_t flags = 0;
  bool confirmed = false;  // its start was asked for and confirmed
  bool stop_fired = false;
  bool timed_out = false;
  consumer_session* session = nullptr;  // null: the session is gone; it settles by message id
  consumer_session* origin = nullptr;   // the session that it came in; outlives its stay with the workers
  std::uint64_t tag = 0;
  inbox::record record = inbox::none;  // its claim; waiting: the claim that it waits for
  held* next_waiter = nullptr;         // deliveries of the same key that wait for this one
  time_point since{};                  // waiting: from when; running: start
  time_point timeout_at = never;
  reason why = reason::none;
  std::unique_ptr<retry_record> retries;  // condemned: as the sender gave it
};

// What the shell reports of a handler's end.
struct run_end {
  held* delivery = nullptr;
  bool started = true;  // false: the worker didn't start it (lease over, paused, stopping)
  onay::outcome outcome;
};

struct consumer_counters {
  std::uint64_t starts = 0, accepted = 0, retried = 0, released = 0, rejected = 0, buried = 0, duplicates = 0;
  std::uint64_t lost_leases = 0, bad_frames = 0, malformed = 0, results_dropped = 0, deliveries = 0, pins_dropped = 0;
  std::uint64_t by_error_class[7] = {};
};

// One sender, in one session.
struct consumer_session {
  struct settlement_extra {
    duration delay{};
    error_class cls = error_class::none;
    reason why = reason::none;
    std::string text;
    std::string result;
    bool had_started = false;
  };
  struct tag_slot {
    std::uint64_t number = 0;  // 0: no entry
    std::uint64_t size = 0;
    held* delivery = nullptr;  // until it is settled; of a reject until it is buried
    bool settled = false;      // and not confirmed yet
    settlement kind = settlement::accept;
    std::uint64_t mark = 0;                   // settled: covered by the heartbeat with this number
    std::unique_ptr<settlement_extra> extra;  // null: a plain accept
    explicit operator bool() const { return number != 0; }
  };
  struct late_slot {
    late_item item;
    std::string result;
    std::uint64_t mark = 0;  // 0: not sent yet
  };

  consumer_session(session_id session, route connection, const greeting& sender, time_point since)
      : id(session),
        to(std::move(connection)),
        peer(sender),
        terms(std::get<sender_greeting>(sender.part)),
        beat(role::consumer, terms.lease, terms.heartbeat, since) {}

  session_id id;
  route to;
  greeting peer;
  sender_greeting terms;
  core::pulse beat;
  std::atomic<std::int64_t> startable_until{0};
  sequence_table<tag_slot> tags;
  range_set missing;  // below highest_seen, never received
  std::uint64_t highest_seen = 0;
  std::uint64_t bytes_seen = 0;
  std::vector<std::uint64_t> unconfirmed;  // settled tags; may contain closed ones
  // Credit: absolute, as granted now; and the larger one that counts until the sender has echoed a lowering.
  std::uint64_t credit_tag = 0, credit_bytes = 0;
  std::uint64_t counted_tag = 0, counted_bytes = 0;
  std::uint64_t lowered_by = 0;                    // that heartbeat's number; 0: none
  std::uint64_t told_tag = 0, told_bytes = 0;      // as last told
  std::uint64_t returned = 0, returned_bytes = 0;  // tags whose place is free again
  std::uint64_t backlog = 0, next_size = 0;        // the sender's
  // To be told with the next SETTLE.
  std::vector<std::uint64_t> accepted_now, others_now, started_now;
  std::vector<std::uint64_t> asking;  // starts asked for and not confirmed
  bool ask_now = false;
  std::vector<late_slot> late;  // unconfirmed
  bool late_now = false;
  std::uint64_t settle_number = 0;
  std::uint32_t dispatched = 0;  // deliveries that workers may still read this session's lease of
  bool ended = false;            // kept only for those
  bool parting = false;          // we said BYE
  std::uint64_t probe_mark = 0;  // a heartbeat with this number or a later one, echoed, proves that it lives

  [[nodiscard]] std::uint64_t unused() const { return counted_tag > highest_seen ? counted_tag - highest_seen : 0; }
};

class consumer_core {
 public:
  // `draw` gives uniform numbers in [0, 1) for jitter.
  consumer_core(consumer_config config, entropy& ids, std::function<double()> draw);
  ~consumer_core();
  consumer_core(const consumer_core&) = delete;
  consumer_core& operator=(const consumer_core&) = delete;

  // --- getters ---
  [[nodiscard]] const consumer_config& config() const { return config_; }
  [[nodiscard]] const consumer_counters& counters() const { return counters_; }
  [[nodiscard]] const inbox& records() const { return inbox_; }
  struct snapshot {
    std::uint64_t queued = 0, dispatched = 0, running = 0, stuck = 0, waiting = 0, asking = 0, burying = 0,
                  unconfirmed = 0;
    std::uint64_t held_bytes = 0, held = 0, sessions = 0, late = 0, backlog = 0;
  };
  [[nodiscard]] snapshot look();
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] bool draining() const { return drain_ != drain_state::none; }
  [[nodiscard]] bool hopeful() const { return links_.hopeful(); }
  [[nodiscard]] const std::string& refused_by_peer() const { return refused_by_peer_; }
  // A dispatched delivery may have started without our knowing: the shell looks at its workers every few milliseconds
  // and reports what runs with `handle_started`.
  [[nodiscard]] bool wants_start_watch() const { return dispatched_ > 0; }

  // --- inputs ---
  void add_connection(instant now, const route& r);
  // `buffer` keeps the views in `f` alive; it is retained while deliveries of the frame are held.
  void handle_frame(instant now, const route& from, const frame& f, const std::shared_ptr<const void>& buffer);
  void handle_unreadable(instant now, const route& from, std::uint8_t type, std::optional<session_id> session,
                         std::string text);
  void handle_unsendable(instant now, const route& r);
  void handle_writable(instant now, const route& r);
  void handle_started(instant now, held* d, time_point at);
  void handle_ended(instant now, run_end&& end);
  // The collector has confirmed the letter.
  void handle_buried(instant now, held* d);
  void handle_time(instant now);

  // --- commands ---
  // What the dead-letter link could take now. Call before `flush`.
  void set_burial_room(std::uint64_t messages, std::uint64_t bytes) {
    burial_room_ = messages;
    burial_room_bytes_ = bytes;
  }
  // The size of a letter for which there was no room since the last call; 0: there was none.
  [[nodiscard]] std::uint64_t take_burial_wish() { return std::exchange(burial_wish_, 0); }
  void flush(instant now);
  void pause() { paused_ = true; }
  void resume() { paused_ = false; }
  // Hands back what never started, lets the rest finish until `deadline`, then says BYE.
  void begin_drain(instant now, time_point deadline);
  [[nodiscard]] bool drain_done() const { return drain_ == drain_state::done; }
  struct drain_report {
    std::uint64_t settled = 0, released = 0, running = 0, unconfirmed = 0, dead_letters = 0;
  };
  [[nodiscard]] drain_report report();

  // --- outputs ---
  std::vector<outgoing> frames;
  std::vector<held*> dispatch;  // to the workers, in this order
  std::vector<held*> stops;     // fire their stop tokens, if they run
  std::vector<held*> burials;   // send their dead letters: id, why, *retries, headers, payload
  [[nodiscard]] time_point next_deadline();
  [[nodiscard]] std::vector<route> wants_writable() const { return links_.wants_writable(); }

 private:
  using slot = consumer_session::tag_slot;
  using extra = consumer_session::settlement_extra;

  // consumer_core.cpp: sessions
  void take_link_events(instant now);
  consumer_session* session_of(const route& from, std::optional<session_id> named, frame_type type);
  void handle(instant now, consumer_session& s, const sender_heartbeat& h);
  void end_session(instant now, consumer_session& s, bool again);
  void forget_session(instant now, consumer_session& s);
  void close_session(instant now, consumer_session& s, error_code code, std::uint8_t about, std::string text);
  void answer_error(const route& to, error_code code, std::optional<session_id> session, std::uint8_t about,
                    bool closed, std::string text);
  void open(const link_event& e);
  void drop_session_if_unused(consumer_session& s);
  void note_away(instant now, std::uint64_t sender_id);
  [[nodiscard]] duration pin_age() const;

  // consumer_admit.cpp: deliveries
  void handle(instant now, consumer_session& s, const deliver& f, const std::shared_ptr<const void>& buffer);
  void admit(instant now, consumer_session& s, std::uint64_t tag, const deliver_item& item,
             const std::shared_ptr<const void>& buffer, std::uint64_t key_hash);
  void admit_key(instant now, held* d, std::uint64_t key_hash);
  void take_back(instant now, consumer_session& s, std::uint64_t tag);
  void wake_waiters(instant now, held* first, bool accepted, std::string_view result, duration delay);
  void unlink_waiter(held* d);
  void release_stale_waiters(instant now);
  held* new_held();
  void free_held(held* d);

  // consumer_run.cpp: starts and ends
  void pump(instant now);
  bool start_next(instant now);
  void abandon(instant now, held* d);
  [[nodiscard]] bool needs_word(const held& d) const;
  [[nodiscard]] std::size_t in_flight() const { return dispatched_ + running_.size() + asking_; }
  [[nodiscard]] std::size_t stuck() const;
  void drop_claim(held* d);
  void pin(inbox::record r, const held& d);
  void ask(instant now, held* d);
  void confirm_starts(consumer_session& s, const ranges& confirmed);
  void to_workers(held* d);
  void back_from_workers(held* d);
  void finish_accepted(instant now, held* d, std::string&& result);
  void finish_failed(instant now, held* d, onay::outcome&& o);
  void never_started(instant now, held* d);
  void handle_timeouts(instant now);
  void release_queue(instant now, duration delay);

  // consumer_settle.cpp: settlements, burying
  void settle_accept(instant now, held* d, std::string_view result);
  void settle_with(instant now, held* d, settlement kind, extra e);
  void mark_settled(instant now, consumer_session& s, std::uint64_t tag, slot& t, settlement kind,
                    std::unique_ptr<extra> e);
  void reject(instant now, held* d, reason why, error_class cls, std::string text, bool had_started);
  void bury(instant now, held* d);
  void handle(instant now, consumer_session& s, const settled& f);
  void confirm_tag(instant now, consumer_session& s, std::uint64_t tag, settlement kind, core::verdict v,
                   const std::optional<retry_record>& record);
  void repeat_unconfirmed(instant now, consumer_session& s);
  void add_late(consumer_session& s, late_item item, std::string_view result);
  consumer_session* session_with(std::uint64_t sender_id);
  duration release_delay();
  static settlement_item item_of(std::uint64_t tag, const slot& t);

  // consumer_credit.cpp: grants and what goes out
  [[nodiscard]] std::uint64_t own_room(const consumer_session& s) const;
  void grant();
  static void grant_to(consumer_session& s, std::uint64_t messages, std::uint64_t bytes);
  static void withdraw(consumer_session& s);
  static void give_place_back(consumer_session& s, std::uint64_t size);
  [[nodiscard]] bool has_news(const consumer_session& s) const;
  void send_settle(instant now, consumer_session& s);
  void send_heartbeat(instant now, consumer_session& s);

  // consumer_drain.cpp
  void drain_step(instant now);
  void say_bye(instant now, consumer_session& s);
  bye farewell(consumer_session& s);

  consumer_config config_;
  std::function<double()> draw_;
  links links_;
  inbox inbox_;
  consumer_counters counters_;
  std::map<session_id, std::unique_ptr<consumer_session>> sessions_;
  std::vector<std::unique_ptr<consumer_session>> ended_sessions_;  // until no worker can read their lease
  std::deque<held> pool_;
  std::vector<held*> free_;
  std::deque<held*> queue_;       // admitted, in order; not handed to the workers
  std::vector<held*> waiting_;    // for another delivery of their key
  std::vector<held*> running_;    // observed
  std::vector<held*> active_;     // by inbox record: the delivery that claimed it
  std::uint32_t dispatched_ = 0;  // at the workers, start not observed
  std::uint32_t asking_ = 0;      // waiting for the sender's word, a slot reserved
  std::uint32_t suspects_queued_ = 0;
  held* alone_ = nullptr;  // asking, dispatched or running: nothing else starts
  time_point alone_since_ = never;
  std::uint64_t burial_room_ = 0, burial_room_bytes_ = 0, burial_wish_ = 0;
  std::uint32_t burying_ = 0;  // letters that the collector hasn't confirmed
  std::uint32_t burial_failures_ = 0;
  time_point burial_retry_at_{};  // condemned messages come back from their sender no earlier
  // Late settlements of senders without a session now; of accepts the inbox knows (pins).
  std::map<std::uint64_t, std::vector<consumer_session::late_slot>> homeless_late_;
  struct away {
    std::uint64_t sender_id;
    time_point since;
  };
  std::vector<away> away_;  // senders with pins and no session
  std::string refused_by_peer_;
  bool paused_ = false;
  std::size_t grant_turn_ = 0;
  time_point last_step_ = never;

  enum class drain_state { none, draining, parting, done };
  drain_state drain_ = drain_state::none;
  time_point drain_deadline_ = never;
  std::uint64_t settled_before_drain_ = 0, released_before_drain_ = 0, unconfirmed_at_end_ = 0;
};

}  // namespace onay::core
