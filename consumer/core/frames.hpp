// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The commands of the protocol as plain structs: what the cores exchange and the wire turns into bytes. The meaning of
// each field is in docs/protocol.md. Views point into the frame's bytes (received) or into a core's own tables (sent):
// a received frame's views live as long as its buffer, a sent frame's until the next call into the core that made it.
#pragma once

#include "core/ranges.hpp"

#include <onay/message.hpp>
#include <onay/outcome.hpp>
#include <onay/time.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace onay::core {

inline constexpr std::uint32_t protocol_version = 1;

using session_id = std::uint64_t;

// One connection of one socket, as the shell names it. `peer` is ZeroMQ's routing id on a binding (ROUTER) socket and
// empty on a connecting (DEALER) one.
struct route {
  std::uint32_t socket = 0;
  std::string peer;
  friend auto operator<=>(const route&, const route&) = default;
};

enum class frame_type : std::uint8_t {
  hello = 1,
  welcome = 2,
  wait = 3,
  refused = 4,
  deliver = 5,
  sender_heartbeat = 6,
  consumer_heartbeat = 7,
  settle = 8,
  settled = 9,
  bye = 10,
  bye_ok = 11,
  error = 12,
};

enum class role : std::uint8_t { sender = 1, consumer = 2 };

enum class settlement : std::uint8_t { accept = 1, retry = 2, release = 3, reject = 4, buried = 5 };

// What a sender made of a settlement.
enum class verdict : std::uint8_t { applied = 1, late = 2, stale = 3 };

enum class refusal : std::uint8_t {
  none = 0,
  identity_in_use = 1,
  unsupported_version = 2,
  wrong_role = 3,
  bad_options = 4,
  closing = 5,
};

enum class error_code : std::uint8_t {
  unreadable = 1,          // the frame isn't a command, or a field is out of range
  hello_required = 2,      // no session on this connection
  unknown_session = 3,     // a session that this end doesn't know (any more)
  credit_overrun = 4,      // more was sent than was granted; the session is closed
  unreadable_deliver = 5,  // the session is closed; send its messages one a frame
  out_of_place = 6,        // a command that this role never sends
};

struct sender_greeting {
  std::uint64_t sender_id = 0;
  std::uint64_t epoch = 0;
  std::uint64_t lowest_held = 0;
  duration heartbeat{};
  duration lease{};
  friend bool operator==(const sender_greeting&, const sender_greeting&) = default;
};

struct consumer_greeting {
  std::optional<std::uint32_t> attempts_max;  // nil: no limit (a collector)
  bool confirms_all_starts = false;
  bool can_bury = false;
  std::uint64_t largest_dead_letter = 0;  // key + headers + payload of a message that it can bury
  friend bool operator==(const consumer_greeting&, const consumer_greeting&) = default;
};

struct greeting {
  std::string logical_id;
  std::uint64_t instance = 0;
  std::uint64_t largest_message = 0;  // key + headers + payload that this end takes (consumer) or sends (sender)
  std::uint64_t byte_window = 0;      // consumer: its whole credit in bytes; sender: 0
  std::variant<sender_greeting, consumer_greeting> part;
  [[nodiscard]] core::role role() const { return part.index() == 0 ? role::sender : role::consumer; }
  friend bool operator==(const greeting&, const greeting&) = default;
};

struct hello {
  std::uint32_t version_min = protocol_version;
  std::uint32_t version_max = protocol_version;
  greeting self;
  std::uint64_t connection = 0;
  std::optional<session_id> resume;
};

struct welcome {
  session_id session = 0;
  std::uint32_t version = protocol_version;
  greeting self;
  std::uint64_t connection = 0;
  bool resumed = false;
};

struct wait {
  std::uint64_t connection = 0;
  duration how_long{};
  std::string text;
};

struct refused {
  std::uint64_t connection = 0;
  refusal why = refusal::none;
  duration how_long{};  // zero: don't come back by yourself
  std::string text;
};

// Why a received document can't be used as it is. `raw` has the bytes in any case.
enum class document_state : std::uint8_t { ok, malformed, unsupported_version, missing_key, key_too_long };

struct document {
  std::string_view key;
  std::uint32_t attempt = 1;  // of the start that this delivery would be
  duration age{};
  std::optional<duration> time_left;  // nil: the message has no limit
  std::string_view headers;           // encoded, see wire/headers.hpp; opaque to the cores
  std::string_view payload;
  // Condemned only: nothing but these and the original bytes is needed to bury it.
  reason why = reason::none;
  std::shared_ptr<const retry_record> record;  // apart: a plain delivery shouldn't carry its size about
};

namespace delivery_flag {
inline constexpr std::uint8_t suspect = 1;           // starts only on the sender's confirmation
inline constexpr std::uint8_t alone = 2;             // and only while nothing else runs
inline constexpr std::uint8_t may_have_started = 4;  // an earlier confirmed start was lost
inline constexpr std::uint8_t condemned = 8;         // to be buried, never run
inline constexpr std::uint8_t nil = 16;              // the message is no longer this consumer's; settle `release`
inline constexpr std::uint8_t all = 31;
}  // namespace delivery_flag

struct deliver_item {
  std::uint64_t number = 0;
  std::uint8_t flags = 0;
  std::uint64_t size = 0;  // key + headers + payload, fixed at the tag's first sending
  document_state state = document_state::ok;
  document doc;
  std::string_view raw;  // received only: the document's bytes
};

struct deliver {
  session_id session = 0;
  std::uint64_t first_tag = 0;
  std::vector<deliver_item> items;
};

struct sender_heartbeat {
  session_id session = 0;
  std::uint64_t number = 0;
  std::uint64_t echo = 0;
  std::uint64_t highest_tag = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t backlog_messages = 0;
  std::uint64_t backlog_bytes = 0;
  std::uint64_t next_size = 0;
  ranges confirmed;  // starts, by tag
  std::uint64_t epoch = 0;
  std::uint64_t lowest_held = 0;
  bool answer_now = false;
};

struct consumer_heartbeat {
  session_id session = 0;
  std::uint64_t number = 0;
  std::uint64_t echo = 0;
  ranges queued;
  ranges running;
  ranges settled;  // not confirmed yet
  ranges burying;
  ranges asked;  // starts asked for
  std::uint64_t credit_tag = 0;
  std::uint64_t credit_bytes = 0;
  bool answer_now = false;
};

// A settlement that is more than a plain accept.
struct settlement_item {
  std::uint64_t tag = 0;
  settlement kind = settlement::accept;
  duration delay{};
  error_class cls = error_class::none;
  reason why = reason::none;
  std::string_view text;
  bool had_started = false;
  std::string_view result;
};

// The same for a session that is gone, by message id. The sender id is the addressee's.
struct late_item {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  settlement kind = settlement::accept;
  bool had_started = false;
  std::string_view result;
};

struct settle {
  session_id session = 0;
  std::uint64_t number = 0;
  ranges accepted;  // without a result
  std::vector<settlement_item> others;
  std::vector<late_item> late;
  ranges started;  // since the last one and still running
  ranges asked;
  std::uint64_t credit_tag = 0;
  std::uint64_t credit_bytes = 0;
  std::uint64_t credit_heartbeat = 0;
};

struct settled_item {
  std::uint64_t tag = 0;
  settlement kind = settlement::accept;
  core::verdict verdict = verdict::applied;
  std::optional<retry_record> record;  // of a reject
};

struct settled_late {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  settlement kind = settlement::accept;
  core::verdict verdict = verdict::late;
};

struct settled {
  session_id session = 0;
  std::uint64_t number = 0;  // of the `settle` that it answers
  ranges accepted;           // applied
  std::vector<settled_item> others;
  std::vector<settled_late> late;
  ranges confirmed;
};

struct bye {
  session_id session = 0;
  std::uint64_t last_tag = 0;  // consumer: highest seen; sender: highest sent
  ranges running;
  ranges accepted;
  std::vector<settlement_item> others;
};

struct bye_ok {
  session_id session = 0;
};

struct error {
  error_code code = error_code::unreadable;
  std::optional<session_id> session;  // of the frame that it is about
  std::uint8_t about = 0;             // that frame's type, 0 if unreadable
  bool closed = false;
  std::string text;
};

using frame = std::variant<hello, welcome, wait, refused, deliver, sender_heartbeat, consumer_heartbeat, settle,
                           settled, bye, bye_ok, error>;

// A frame on its way out.
struct outgoing {
  route to;
  core::frame frame;
};

}  // namespace onay::core
