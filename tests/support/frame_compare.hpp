// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Whether two commands say the same. Written out here and not beside the structs: nothing but tests compares frames.
#pragma once

#include "core/frames.hpp"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace onay::test {

inline bool same(const retry_record& a, const retry_record& b) {
  const auto all = [](const retry_record& r) {
    return std::tie(r.operation_key, r.attempts, r.first_attempt, r.last_attempt, r.last_error, r.last_error_text,
                    r.next_attempt, r.deadline, r.state);
  };
  return all(a) == all(b);
}

inline bool same(const std::optional<retry_record>& a, const std::optional<retry_record>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

inline bool same(const std::shared_ptr<const retry_record>& a, const std::shared_ptr<const retry_record>& b) {
  return (a == nullptr) == (b == nullptr) && (a == nullptr || same(*a, *b));
}

// A received document that can be used is compared by its fields: equal ones may come in different bytes.
inline bool same(const core::deliver_item& a, const core::deliver_item& b) {
  const auto head = [](const core::deliver_item& i) { return std::tie(i.number, i.flags, i.size, i.state); };
  const auto all = [](const core::document& d) {
    return std::tie(d.key, d.attempt, d.age, d.time_left, d.headers, d.payload, d.why);
  };
  return head(a) == head(b) && all(a.doc) == all(b.doc) && same(a.doc.record, b.doc.record) &&
         (a.state == core::document_state::ok || a.raw == b.raw);
}

inline bool same(const core::settlement_item& a, const core::settlement_item& b) {
  const auto all = [](const core::settlement_item& i) {
    return std::tie(i.tag, i.kind, i.delay, i.cls, i.why, i.text, i.had_started, i.result);
  };
  return all(a) == all(b);
}

inline bool same(const core::late_item& a, const core::late_item& b) {
  const auto all = [](const core::late_item& i) {
    return std::tie(i.epoch, i.number, i.kind, i.had_started, i.result);
  };
  return all(a) == all(b);
}

inline bool same(const core::settled_item& a, const core::settled_item& b) {
  return std::tie(a.tag, a.kind, a.verdict) == std::tie(b.tag, b.kind, b.verdict) && same(a.record, b.record);
}

inline bool same(const core::settled_late& a, const core::settled_late& b) {
  return std::tie(a.epoch, a.number, a.kind, a.verdict) == std::tie(b.epoch, b.number, b.kind, b.verdict);
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& x, const T& y) { return same(x, y); });
}

inline bool same(const core::hello& a, const core::hello& b) {
  const auto all = [](const core::hello& f) {
    return std::tie(f.version_min, f.version_max, f.self, f.connection, f.resume);
  };
  return all(a) == all(b);
}

inline bool same(const core::welcome& a, const core::welcome& b) {
  const auto all = [](const core::welcome& f) {
    return std::tie(f.session, f.version, f.self, f.connection, f.resumed);
  };
  return all(a) == all(b);
}

inline bool same(const core::wait& a, const core::wait& b) {
  return std::tie(a.connection, a.how_long, a.text) == std::tie(b.connection, b.how_long, b.text);
}

inline bool same(const core::refused& a, const core::refused& b) {
  return std::tie(a.connection, a.why, a.how_long, a.text) == std::tie(b.connection, b.why, b.how_long, b.text);
}

inline bool same(const core::deliver& a, const core::deliver& b) {
  return std::tie(a.session, a.first_tag) == std::tie(b.session, b.first_tag) && same(a.items, b.items);
}

inline bool same(const core::sender_heartbeat& a, const core::sender_heartbeat& b) {
  const auto all = [](const core::sender_heartbeat& f) {
    return std::tie(f.session, f.number, f.echo, f.highest_tag, f.bytes_sent, f.backlog_messages, f.backlog_bytes,
                    f.next_size, f.confirmed, f.epoch, f.lowest_held, f.answer_now);
  };
  return all(a) == all(b);
}

inline bool same(const core::consumer_heartbeat& a, const core::consumer_heartbeat& b) {
  const auto all = [](const core::consumer_heartbeat& f) {
    return std::tie(f.session, f.number, f.echo, f.queued, f.running, f.settled, f.burying, f.asked, f.credit_tag,
                    f.credit_bytes, f.answer_now);
  };
  return all(a) == all(b);
}

inline bool same(const core::settle& a, const core::settle& b) {
  const auto all = [](const core::settle& f) {
    return std::tie(f.session, f.number, f.accepted, f.started, f.asked, f.credit_tag, f.credit_bytes,
                    f.credit_heartbeat);
  };
  return all(a) == all(b) && same(a.others, b.others) && same(a.late, b.late);
}

inline bool same(const core::settled& a, const core::settled& b) {
  const auto all = [](const core::settled& f) { return std::tie(f.session, f.number, f.accepted, f.confirmed); };
  return all(a) == all(b) && same(a.others, b.others) && same(a.late, b.late);
}

inline bool same(const core::bye& a, const core::bye& b) {
  const auto all = [](const core::bye& f) { return std::tie(f.session, f.last_tag, f.running, f.accepted); };
  return all(a) == all(b) && same(a.others, b.others);
}

inline bool same(const core::bye_ok& a, const core::bye_ok& b) { return a.session == b.session; }

inline bool same(const core::error& a, const core::error& b) {
  const auto all = [](const core::error& f) { return std::tie(f.code, f.session, f.about, f.closed, f.text); };
  return all(a) == all(b);
}

inline bool same(const core::frame& a, const core::frame& b) {
  return a.index() == b.index() &&
         std::visit([&b](const auto& f) { return same(f, std::get<std::decay_t<decltype(f)>>(b)); }, a);
}

}  // namespace onay::test
