// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Bytes into commands. The order of the fields is that of docs/protocol.md; encode.cpp writes them in the same order.
#include "wire/codec.hpp"
#include "wire/document.hpp"
#include "wire/fields.hpp"

#include <array>
#include <type_traits>
#include <utility>

namespace onay::wire {
namespace {

constexpr std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();

constexpr std::array<const char*, 13> names = {
    "command", "HELLO",   "WELCOME", "WAIT",   "REFUSED", "DELIVER", "sender heartbeat", "consumer heartbeat",
    "SETTLE",  "SETTLED", "BYE",     "BYE_OK", "ERROR"};
constexpr std::uint64_t type_max = names.size() - 1;

// The command of that type in `out`, with the vectors that it had if it was one already.
template <class T>
T& reuse(core::frame& out) {
  auto* same = std::get_if<T>(&out);
  return same != nullptr ? *same : out.emplace<T>();
}

core::role read_identity(fields& in, core::greeting& g) {
  const auto role = in.choice("role", core::role::sender, core::role::consumer);
  const auto id = in.bytes("logical id");
  if (id.empty() || id.size() > logical_id_size_max) {
    in.fail("logical id", "1 to 255 bytes");
  } else {
    g.logical_id.assign(id);
  }
  g.instance = in.uint("instance");
  return role;
}

void read_limits(fields& in, core::role role, core::greeting& g) {
  g.largest_message = in.uint("largest message");
  g.byte_window = in.uint("byte window");
  if (role == core::role::sender) {
    auto& s = g.part.emplace<core::sender_greeting>();
    s.sender_id = in.uint("sender id");
    s.epoch = in.uint("epoch");
    s.lowest_held = in.uint("lowest held");
    s.heartbeat = in.time("heartbeat");
    s.lease = in.time("lease");
  } else {
    auto& c = g.part.emplace<core::consumer_greeting>();
    if (const auto attempts = in.optional_uint("attempts max", 1, u32_max)) {
      c.attempts_max = static_cast<std::uint32_t>(*attempts);
    }
    c.confirms_all_starts = in.boolean("confirms all starts");
    c.can_bury = in.boolean("can bury");
    c.largest_dead_letter = in.uint("largest dead letter");
  }
}

void read(fields& in, core::hello& f) {
  f.version_min = in.uint_of<std::uint32_t>("version min", 1);
  f.version_max = in.uint_of<std::uint32_t>("version max", f.version_min);
  const auto role = read_identity(in, f.self);
  f.connection = in.uint("connection");
  f.resume = in.optional_uint("resume");
  read_limits(in, role, f.self);
}

void read(fields& in, core::welcome& f) {
  f.version = in.uint_of<std::uint32_t>("version", 1);
  const auto role = read_identity(in, f.self);
  f.connection = in.uint("connection");
  f.resumed = in.boolean("resumed");
  read_limits(in, role, f.self);
}

void read(fields& in, core::wait& f) {
  f.connection = in.uint("connection");
  f.how_long = in.time("how long");
  f.text.assign(in.text("text"));
}

void read(fields& in, core::refused& f) {
  f.connection = in.uint("connection");
  f.why = in.choice("why", core::refusal::none, core::refusal::closing);
  f.how_long = in.time("how long");
  f.text.assign(in.text("text"));
}

void read_item(fields& in, core::deliver_item& item) {
  const auto outer = in.begin("delivery");
  item.number = in.uint("number", 1);
  item.flags = in.uint_of<std::uint8_t>("flags", 0, core::delivery_flag::all);
  item.size = in.uint("size");
  item.raw = in.bytes("document");
  in.end(outer, "delivery");
  if (in.failed()) {
    return;
  }
  if ((item.flags & core::delivery_flag::nil) != 0) {
    item.doc = core::document{};
    item.state = core::document_state::ok;
    return;
  }
  const bool condemned = (item.flags & core::delivery_flag::condemned) != 0;
  item.state = read_document(item.raw, condemned, in.limits().text_max, item.doc);
}

void read(fields& in, core::deliver& f) {
  f.first_tag = in.uint("first tag", 1);
  const auto outer = in.begin_list("deliveries", f.items);
  if (!f.items.empty() && f.first_tag > fields::uint_max - (f.items.size() - 1)) {
    in.fail("first tag", "tags that fit 64 bits");
  }
  for (auto& item : f.items) {
    if (in.failed()) {
      break;
    }
    read_item(in, item);
  }
  in.end(outer, "deliveries");
}

void read(fields& in, core::sender_heartbeat& f) {
  f.number = in.uint("number");
  f.echo = in.uint("echo");
  f.highest_tag = in.uint("highest tag");
  f.bytes_sent = in.uint("bytes sent");
  f.backlog_messages = in.uint("backlog messages");
  f.backlog_bytes = in.uint("backlog bytes");
  f.next_size = in.uint("next size");
  in.ranges("confirmed", f.confirmed);
  f.epoch = in.uint("epoch");
  f.lowest_held = in.uint("lowest held");
  f.answer_now = in.boolean("answer now");
}

void read(fields& in, core::consumer_heartbeat& f) {
  f.number = in.uint("number");
  f.echo = in.uint("echo");
  in.ranges("queued", f.queued);
  in.ranges("running", f.running);
  in.ranges("settled", f.settled);
  in.ranges("burying", f.burying);
  in.ranges("asked", f.asked);
  f.credit_tag = in.uint("credit tag");
  f.credit_bytes = in.uint("credit bytes");
  f.answer_now = in.boolean("answer now");
}

void read_settlements(fields& in, std::vector<core::settlement_item>& items) {
  const auto outer = in.begin_list("others", items);
  for (auto& item : items) {
    if (in.failed()) {
      break;
    }
    const auto list = in.begin("settlement");
    item.tag = in.uint("tag", 1);
    item.kind = in.choice("kind", core::settlement::accept, core::settlement::buried);
    item.delay = in.time("delay");
    item.cls = in.choice("class", error_class::none, error_class::uncertain);
    item.why = in.choice("reason", reason::none, reason::unsupported_version);
    item.text = in.text("text");
    item.had_started = in.boolean("had started");
    item.result = in.bytes("result");
    in.end(list, "settlement");
  }
  in.end(outer, "others");
}

void read(fields& in, core::settle& f) {
  f.number = in.uint("number");
  in.ranges("accepted", f.accepted);
  read_settlements(in, f.others);
  const auto outer = in.begin_list("late", f.late);
  for (auto& item : f.late) {
    if (in.failed()) {
      break;
    }
    const auto list = in.begin("late settlement");
    item.epoch = in.uint("epoch");
    item.number = in.uint("message number", 1);
    item.kind = in.choice("kind", core::settlement::accept, core::settlement::buried);
    item.had_started = in.boolean("had started");
    item.result = in.bytes("result");
    in.end(list, "late settlement");
  }
  in.end(outer, "late");
  in.ranges("started", f.started);
  in.ranges("asked", f.asked);
  f.credit_tag = in.uint("credit tag");
  f.credit_bytes = in.uint("credit bytes");
  f.credit_heartbeat = in.uint("credit heartbeat");
}

void read(fields& in, core::settled& f) {
  f.number = in.uint("number");
  in.ranges("accepted", f.accepted);
  auto outer = in.begin_list("others", f.others);
  for (auto& item : f.others) {
    if (in.failed()) {
      break;
    }
    const auto list = in.begin("answer");
    item.tag = in.uint("tag", 1);
    item.kind = in.choice("kind", core::settlement::accept, core::settlement::buried);
    item.verdict = in.choice("verdict", core::verdict::applied, core::verdict::stale);
    in.record("record", item.record);
    in.end(list, "answer");
  }
  in.end(outer, "others");
  outer = in.begin_list("late", f.late);
  for (auto& item : f.late) {
    if (in.failed()) {
      break;
    }
    const auto list = in.begin("late answer");
    item.epoch = in.uint("epoch");
    item.number = in.uint("message number", 1);
    item.kind = in.choice("kind", core::settlement::accept, core::settlement::buried);
    item.verdict = in.choice("verdict", core::verdict::applied, core::verdict::stale);
    in.end(list, "late answer");
  }
  in.end(outer, "late");
  in.ranges("confirmed", f.confirmed);
}

void read(fields& in, core::bye& f) {
  f.last_tag = in.uint("last tag");
  in.ranges("running", f.running);
  in.ranges("accepted", f.accepted);
  read_settlements(in, f.others);
}

void read(fields&, core::bye_ok&) {}

void read(fields& in, core::error& f) {
  f.code = in.choice("code", core::error_code::unreadable, core::error_code::out_of_place);
  f.about = in.uint_of<std::uint8_t>("about");
  f.closed = in.boolean("closed");
  f.text.assign(in.text("text"));
}

// A command that belongs to a session, one that may name one, one that comes before there is any.
template <class T>
void read_command(fields& in, std::optional<core::session_id> session, core::frame& out) {
  auto& f = reuse<T>(out);
  if constexpr (std::is_same_v<T, core::error>) {
    f.session = session;
  } else if constexpr (requires { f.session; }) {
    if (!session) {
      in.fail("session", "an integer");
    }
    f.session = session.value_or(0);
  } else if (session) {
    in.fail("session", "nil");
  }
  read(in, f);
}

using command_reader = void (*)(fields&, std::optional<core::session_id>, core::frame&);

template <std::size_t... I>
constexpr auto readers_of(std::index_sequence<I...>) {
  return std::array<command_reader, sizeof...(I)>{&read_command<std::variant_alternative_t<I, core::frame>>...};
}
// The variant lists the commands in the order of their type codes, from 1.
constexpr auto readers = readers_of(std::make_index_sequence<std::variant_size_v<core::frame>>{});
static_assert(readers.size() == type_max);
static_assert(
    std::is_same_v<std::variant_alternative_t<std::size_t(core::frame_type::settle) - 1, core::frame>, core::settle>);
static_assert(
    std::is_same_v<std::variant_alternative_t<std::size_t(core::frame_type::error) - 1, core::frame>, core::error>);

}  // namespace

std::optional<unreadable> decode(std::string_view bytes, core::frame& out, const decode_limits& limits) {
  fields in(bytes, limits);
  in.begin_command();
  const auto type = in.uint_of<std::uint8_t>("type", 1);
  const auto session = in.optional_uint("session");
  const auto readable = !in.failed();
  if (type > type_max) {
    in.fail("type", "a code of the list");
  } else if (readable) {
    readers[type - 1U](in, session, out);
  }
  in.end_command();
  if (!in.failed()) {
    return std::nullopt;
  }
  unreadable result{.type = type, .session = readable ? session : std::nullopt, .text = {}};
  result.text.append(names[type <= type_max ? type : 0]).append(": ").append(in.failed_field());
  result.text.append(": expected ").append(in.expectation());
  return result;
}

}  // namespace onay::wire
