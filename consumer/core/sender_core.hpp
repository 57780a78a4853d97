// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The sender's end of the protocol, as decisions: what to hand over to whom, what a settlement means, when a peer is
// lost. No threads, sockets, files, clocks, entropy.
//
// Use: call inputs with `now`; then `flush(now)`, which makes the frames that follow; then take `frames` and
// `finished`; then wait until `next_deadline()` or the next input. Timers are judged by `handle_time`, after waiting
// input was read.
#pragma once

#include "core/frames.hpp"
#include "core/instant.hpp"
#include "core/ledger.hpp"
#include "core/links.hpp"
#include "core/pulse.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace onay::core {

struct sender_config {
  std::string logical_id;
  std::uint64_t instance = 0;   // random per life
  std::uint64_t sender_id = 0;  // of the outbox
  std::uint64_t epoch = 0;
  std::uint64_t hash_seed = 0;
  duration lease = std::chrono::seconds(5);
  duration heartbeat = std::chrono::seconds(1);
  std::optional<duration> age_max = std::chrono::hours(24);
  std::uint64_t largest_message = 8U << 20U;
  std::uint64_t frame_bytes = 64U << 10U;  // a DELIVER holds at most this, or one message
  std::uint32_t parked_max = 16'384;
  bool buries_itself = false;  // has a dead-letter endpoint of its own
};

// A message's end, for whoever waits for it.
struct finished {
  std::shared_ptr<void> receipt;
  std::unique_ptr<std::vector<std::shared_ptr<void>>> joined;
  final_state state = final_state::accepted;
  reason why = reason::none;
  std::string result;
  std::unique_ptr<retry_record> record;  // dead-lettered only
  std::uint64_t size = 0;                // key + headers + payload
};

struct sender_counters {
  std::uint64_t sent = 0, joined = 0, refused = 0, accepted = 0, dead_lettered = 0;
  std::uint64_t first_attempt_successes = 0, successes_after_retry = 0;
  std::uint64_t redeliveries = 0, resent_copies = 0, peers_lost = 0, late_accepts = 0, stale_verdicts = 0,
                bad_frames = 0;
};

// One consumer, in one session.
struct sender_session {
  struct tag_slot {
    std::uint64_t number = 0;           // 0: no entry
    stored_message* message = nullptr;  // null: settled elsewhere; the tag closes as `nil`
    std::uint64_t size = 0;             // fixed at the first sending
    std::uint64_t mark = 0;             // covered by the heartbeat with this number
    bool started = false;               // announced
    bool confirmed = false;             // its start was asked for and confirmed
    bool alone = false;
    bool named = false;  // the consumer has it
    explicit operator bool() const { return number != 0; }
  };

  sender_session(session_id session, route connection, const greeting& consumer, const sender_config& c, time_point now)
      : id(session),
        to(std::move(connection)),
        peer(consumer),
        limits(std::get<consumer_greeting>(consumer.part)),
        beat(role::sender, c.lease, c.heartbeat, now) {}

  session_id id;
  route to;
  greeting peer;
  consumer_greeting limits;
  core::pulse beat;
  sequence_table<tag_slot> tags;       // open ones
  std::vector<std::uint64_t> unnamed;  // tags that no heartbeat has named yet; may contain closed ones
  std::vector<std::uint64_t> missing;  // of those, to be sent again with the next flush
  std::uint64_t highest_tag = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t credit_tag = 0;
  std::uint64_t credit_bytes = 0;
  std::vector<settled> answers;  // to be sent
  bool leaving = false;          // said BYE; handlers still run there
  bool closing = false;          // we said BYE
  bool told_backlog = false;     // while it had no credit left
  std::uint64_t probe_mark = 0;  // a heartbeat with this number or a later one, echoed, proves that it lives

  [[nodiscard]] std::uint64_t free_credit() const { return credit_tag > highest_tag ? credit_tag - highest_tag : 0; }
  [[nodiscard]] bool fits(std::uint64_t size) const {
    return credit_tag > highest_tag && bytes_sent + size <= credit_bytes;
  }
};

class sender_core {
 public:
  sender_core(sender_config config, entropy& ids);
  ~sender_core();
  sender_core(const sender_core&) = delete;
  sender_core& operator=(const sender_core&) = delete;

  // --- getters ---
  [[nodiscard]] const sender_config& config() const { return config_; }
  [[nodiscard]] const sender_counters& counters() const { return counters_; }
  [[nodiscard]] const ledger& messages() const { return ledger_; }
  // A message for `submit`. Any thread.
  [[nodiscard]] std::unique_ptr<stored_message> make_message(std::string_view key, std::string_view headers,
                                                             std::string_view payload) const {
    return stored_message::make(key, ledger_.hash(key), headers, payload);
  }
  // See `ledger::removed`; may be emptied at any time.
  [[nodiscard]] std::vector<std::unique_ptr<stored_message>>& removed_messages() { return ledger_.removed; }
  [[nodiscard]] std::size_t overdue() const { return overdue_.size(); }
  [[nodiscard]] std::size_t undeliverable() const { return undeliverable_.size(); }
  [[nodiscard]] std::size_t delivered() const;
  [[nodiscard]] const std::map<session_id, std::unique_ptr<sender_session>>& sessions() const { return sessions_; }
  [[nodiscard]] const std::string& refused_by_peer() const { return refused_by_peer_; }
  [[nodiscard]] bool ready(session_id s) const { return links_.ready(s); }
  // Messages and bytes that could be handed over at once: what a dead-letter link offers to bury with.
  [[nodiscard]] std::uint64_t free_credit() const;
  [[nodiscard]] std::uint64_t free_credit_bytes() const;

  // --- inputs ---
  void add_connection(instant now, const route& r);
  enum class submitted { taken, joined, conflict };
  // Takes a message with its `receipt`; sets `born`, `limit`. On a conflict (the key is unsettled, with another
  // payload) the receipt is finished as `pending`/`key_conflict`.
  submitted submit(instant now, std::unique_ptr<stored_message> m, std::optional<duration> deadline = {});
  // Received: its views must live during the call.
  void handle_frame(instant now, const route& from, const frame& f);
  void handle_unreadable(instant now, const route& from, std::uint8_t type, std::optional<session_id> session,
                         std::string text);
  void handle_unsendable(instant now, const route& r);
  void handle_writable(instant now, const route& r);
  void handle_time(instant now);

  // --- commands ---
  // A message of `size` would come if there were credit for it. Whoever asks for room first, as a dead-letter link
  // does, has no backlog to state: without this an idle grant of somebody else would never be lowered for it.
  void want_credit(instant now, std::uint64_t size);
  // Makes all frames that can go now. Their views live until the next call into the core.
  void flush(instant now);
  // Says BYE to every peer; nothing more is handed over.
  void begin_close(instant now);
  [[nodiscard]] bool close_done() const { return closing_ && sessions_.empty(); }
  // This sender's own dead-letter link has confirmed it.
  void handle_buried(instant now, std::uint64_t number);
  // What that link could take now. Call before `flush`.
  void set_burial_room(std::uint64_t messages, std::uint64_t bytes) {
    burial_room_ = messages;
    burial_room_bytes_ = bytes;
  }
  // The size of a letter that waits for room there; 0: none does.
  [[nodiscard]] std::uint64_t burial_wish();
  // Ends every unsettled message as `unknown`.
  void abandon_all(instant now);

  // --- outputs ---
  std::vector<outgoing> frames;
  std::vector<finished> finished_messages;
  // Send their dead letters over this sender's own link: `buries_itself` only. Valid until the next call.
  struct burial_request {
    message_id id;
    const stored_message* message;
    reason why;
    retry_record record;
  };
  std::vector<burial_request> burials;
  // Changes after every input and flush.
  [[nodiscard]] time_point next_deadline() const;
  [[nodiscard]] std::vector<route> wants_writable() const { return links_.wants_writable(); }

 private:
  using slot = sender_session::tag_slot;

  // sender_core.cpp
  void take_link_events(instant now);
  sender_session* session_of(const route& from, std::optional<session_id> named, frame_type type, bool settle);
  void handle(instant now, sender_session& s, const consumer_heartbeat& h);
  void handle(instant now, sender_session& s, const bye& b);
  void handle_session_error(instant now, const route& from, const error& e);
  void lose(instant now, sender_session& s);
  void lose_delivery(instant now, sender_session& s, slot& t);
  void answer_error(const route& to, error_code code, std::optional<session_id> session, std::uint8_t about,
                    std::string text);

  // sender_settle.cpp
  void handle(instant now, sender_session& s, const settle& f);
  void apply_ranges(instant now, sender_session& s, const ranges& accepted, ranges& answer);
  settled_item apply(instant now, sender_session& s, const settlement_item& item);
  settled_late apply_late(instant now, sender_session& s, const late_item& item, bool& deferred);
  void confirm_starts(instant now, sender_session& s, const ranges& asked, ranges* confirmed);
  void send_nil(instant now, sender_session& s, std::uint64_t tag, const slot& t);
  void finish_accepted(instant now, stored_message* m, std::string_view result);
  void finish_buried(instant now, stored_message* m);
  finished& finish(stored_message* m);
  void close_tag(sender_session& s, std::uint64_t tag, const slot& t);
  void give_back(instant now, stored_message* m, duration delay);

  // sender_deliver.cpp
  void deliver_what_fits(instant now);
  sender_session* pick(const stored_message& m, time_point now, bool& possible);
  [[nodiscard]] bool takes(const sender_session& s, const stored_message& m, time_point now, bool& too_large) const;
  void fill_frame(instant now, sender_session& s, std::size_t count);
  void describe(instant now, const slot& t, deliver_item& item);
  void find_missing(sender_session& s, std::uint64_t echo, const consumer_heartbeat& h);
  void resend_missing(instant now, sender_session& s);
  void send_heartbeat(instant now, sender_session& s);
  void set_aside(stored_message* m, bool too_large);
  void take_back_aside();
  void set_overdue_aside(instant now);
  void bury_what_nobody_can(instant now);
  [[nodiscard]] bool anyone_buries() const;

  sender_config config_;
  links links_;
  ledger ledger_;
  sender_counters counters_;
  std::map<session_id, std::unique_ptr<sender_session>> sessions_;
  std::map<session_id, time_point> farewells_;  // ended by BYE: answered until then
  // Late settlements whose number an open tag still names: answered when that tag closes.
  struct deferred_answer {
    session_id session;
    std::uint64_t settle_number;
    settled_late answer;
  };
  std::unordered_multimap<std::uint64_t, deferred_answer> deferred_;
  // Starts that were confirmed to a peer that was lost: a late "never started" of that instance takes them back.
  struct lost_start {
    std::uint64_t instance;
    bool charged;
  };
  std::unordered_map<std::uint64_t, lost_start> lost_starts_;
  std::vector<std::uint64_t> overdue_;        // numbers set aside: no connected consumer can bury them
  std::vector<std::uint64_t> undeliverable_;  // numbers set aside: larger than every consumer takes
  std::uint64_t burial_room_ = 0, burial_room_bytes_ = 0;
  std::uint64_t wanted_size_ = 0;
  time_point wanted_until_{};
  time_point earliest_limit_{}, next_limit_scan_{};  // of a scan for overdue messages
  std::string refused_by_peer_;
  time_point last_step_ = never;
  bool closing_ = false;
};

}  // namespace onay::core
