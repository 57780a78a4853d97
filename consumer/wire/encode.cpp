// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Commands into bytes. The order of the fields is that of docs/protocol.md; decode.cpp reads them in the same order.
#include "core/prefetch.hpp"
#include "wire/codec.hpp"
#include "wire/writer.hpp"

#include <algorithm>
#include <variant>

namespace onay::wire {
namespace {

constexpr std::uint64_t document_version = 1;

template <class Stream>
void put_document(writer<Stream>& w, const core::deliver_item& item) {
  const auto& doc = item.doc;
  const bool condemned = (item.flags & core::delivery_flag::condemned) != 0;
  w.array(condemned ? 9 : 7);
  w.uint(document_version);
  w.bytes(doc.key);
  w.uint(std::uint64_t{doc.attempt});
  w.time(doc.age);
  w.time(doc.time_left);
  doc.headers.empty() ? w.nil() : w.bytes(doc.headers);
  w.bytes(doc.payload);
  if (condemned) {
    w.choice(doc.why);
    doc.record ? w.record(*doc.record) : w.nil();
  }
}

class frame_writer {
 public:
  explicit frame_writer(sink& out) : out_(out) {}

  void operator()(const core::hello& f) {
    begin(core::frame_type::hello, std::nullopt, 9 + part_size(f.self));
    out_.uint(std::uint64_t{f.version_min});
    out_.uint(std::uint64_t{f.version_max});
    identity(f.self);
    out_.uint(f.connection);
    out_.uint(f.resume);
    limits(f.self);
  }

  void operator()(const core::welcome& f) {
    begin(core::frame_type::welcome, f.session, 8 + part_size(f.self));
    out_.uint(std::uint64_t{f.version});
    identity(f.self);
    out_.uint(f.connection);
    out_.boolean(f.resumed);
    limits(f.self);
  }

  void operator()(const core::wait& f) {
    begin(core::frame_type::wait, std::nullopt, 3);
    out_.uint(f.connection);
    out_.time(f.how_long);
    out_.text(f.text);
  }

  void operator()(const core::refused& f) {
    begin(core::frame_type::refused, std::nullopt, 4);
    out_.uint(f.connection);
    out_.choice(f.why);
    out_.time(f.how_long);
    out_.text(f.text);
  }

  void operator()(const core::deliver& f) {
    begin(core::frame_type::deliver, f.session, 2);
    out_.uint(f.first_tag);
    out_.array(f.items.size());
    for (std::size_t i = 0; i < f.items.size(); ++i) {
      const auto& item = f.items[i];
      if (i + 2 < f.items.size()) {
        const auto& next = f.items[i + 2].doc.payload;
        core::prefetch(next.data(), std::min<std::size_t>(next.size(), 512));
      }
      out_.array(4);
      out_.uint(item.number);
      out_.uint(std::uint64_t{item.flags});
      out_.uint(item.size);
      document(item);
    }
  }

  void operator()(const core::sender_heartbeat& f) {
    begin(core::frame_type::sender_heartbeat, f.session, 11);
    out_.uint(f.number);
    out_.uint(f.echo);
    out_.uint(f.highest_tag);
    out_.uint(f.bytes_sent);
    out_.uint(f.backlog_messages);
    out_.uint(f.backlog_bytes);
    out_.uint(f.next_size);
    out_.ranges(f.confirmed);
    out_.uint(f.epoch);
    out_.uint(f.lowest_held);
    out_.boolean(f.answer_now);
  }

  void operator()(const core::consumer_heartbeat& f) {
    begin(core::frame_type::consumer_heartbeat, f.session, 10);
    out_.uint(f.number);
    out_.uint(f.echo);
    out_.ranges(f.queued);
    out_.ranges(f.running);
    out_.ranges(f.settled);
    out_.ranges(f.burying);
    out_.ranges(f.asked);
    out_.uint(f.credit_tag);
    out_.uint(f.credit_bytes);
    out_.boolean(f.answer_now);
  }

  void operator()(const core::settle& f) {
    begin(core::frame_type::settle, f.session, 9);
    out_.uint(f.number);
    out_.ranges(f.accepted);
    settlements(f.others);
    out_.array(f.late.size());
    for (const auto& item : f.late) {
      out_.array(5);
      out_.uint(item.epoch);
      out_.uint(item.number);
      out_.choice(item.kind);
      out_.boolean(item.had_started);
      out_.bytes(item.result);
    }
    out_.ranges(f.started);
    out_.ranges(f.asked);
    out_.uint(f.credit_tag);
    out_.uint(f.credit_bytes);
    out_.uint(f.credit_heartbeat);
  }

  void operator()(const core::settled& f) {
    begin(core::frame_type::settled, f.session, 5);
    out_.uint(f.number);
    out_.ranges(f.accepted);
    out_.array(f.others.size());
    for (const auto& item : f.others) {
      out_.array(4);
      out_.uint(item.tag);
      out_.choice(item.kind);
      out_.choice(item.verdict);
      item.record ? out_.record(*item.record) : out_.nil();
    }
    out_.array(f.late.size());
    for (const auto& item : f.late) {
      out_.array(4);
      out_.uint(item.epoch);
      out_.uint(item.number);
      out_.choice(item.kind);
      out_.choice(item.verdict);
    }
    out_.ranges(f.confirmed);
  }

  void operator()(const core::bye& f) {
    begin(core::frame_type::bye, f.session, 4);
    out_.uint(f.last_tag);
    out_.ranges(f.running);
    out_.ranges(f.accepted);
    settlements(f.others);
  }

  void operator()(const core::bye_ok& f) { begin(core::frame_type::bye_ok, f.session, 0); }

  void operator()(const core::error& f) {
    begin(core::frame_type::error, f.session, 4);
    out_.choice(f.code);
    out_.uint(std::uint64_t{f.about});
    out_.boolean(f.closed);
    out_.text(f.text);
  }

 private:
  void begin(core::frame_type type, std::optional<core::session_id> session, std::size_t fields) {
    out_.array(2 + fields);
    out_.choice(type);
    out_.uint(session);
  }

  static std::size_t part_size(const core::greeting& g) { return g.role() == core::role::sender ? 5 : 4; }

  void identity(const core::greeting& g) {
    out_.choice(g.role());
    out_.text(g.logical_id);
    out_.uint(g.instance);
  }

  void limits(const core::greeting& g) {
    out_.uint(g.largest_message);
    out_.uint(g.byte_window);
    if (const auto* s = std::get_if<core::sender_greeting>(&g.part)) {
      out_.uint(s->sender_id);
      out_.uint(s->epoch);
      out_.uint(s->lowest_held);
      out_.time(s->heartbeat);
      out_.time(s->lease);
    } else {
      const auto& c = std::get<core::consumer_greeting>(g.part);
      out_.uint(c.attempts_max);
      out_.boolean(c.confirms_all_starts);
      out_.boolean(c.can_bury);
      out_.uint(c.largest_dead_letter);
    }
  }

  void document(const core::deliver_item& item) {
    if ((item.flags & core::delivery_flag::nil) != 0) {
      out_.bytes({});
      return;
    }
    if (item.state != core::document_state::ok) {
      out_.bytes(item.raw);  // as it was received
      return;
    }
    measure size;
    writer<measure> measuring(size);
    put_document(measuring, item);
    out_.bytes_header(size.size);
    put_document(out_, item);
  }

  void settlements(const std::vector<core::settlement_item>& items) {
    out_.array(items.size());
    for (const auto& item : items) {
      out_.array(8);
      out_.uint(item.tag);
      out_.choice(item.kind);
      out_.time(item.delay);
      out_.choice(item.cls);
      out_.choice(item.why);
      out_.text(item.text);
      out_.boolean(item.had_started);
      out_.bytes(item.result);
    }
  }

  writer<sink> out_;
};

}  // namespace

void encode(const core::frame& f, std::string& out) {
  out.clear();
  sink bytes(out);
  std::visit(frame_writer(bytes), f);
  bytes.flush();
}

}  // namespace onay::wire
