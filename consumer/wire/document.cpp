// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "wire/document.hpp"

#include <limits>
#include <utility>

namespace onay::wire {
namespace {

void clear(core::document& doc) {
  doc.key = {};
  doc.attempt = 1;
  doc.age = {};
  doc.time_left.reset();
  doc.headers = {};
  doc.payload = {};
  doc.why = reason::none;
  doc.record.reset();
}

bool read_instant(cursor& in, std::optional<utc_time>& value) {
  if (in.read_nil()) {
    value.reset();
    return true;
  }
  std::int64_t us = 0;
  if (!in.read_int(us)) {
    return false;
  }
  value = utc_time(duration(us));
  return true;
}

bool read_verdict(cursor& in, std::uint32_t text_max, core::document& doc) {
  if (!read_choice(in, reason::attempts_exhausted, reason::unsupported_version, doc.why)) {
    return false;
  }
  if (in.read_nil()) {
    return true;
  }
  auto record = std::make_shared<retry_record>();
  const bool sound = read_record(in, 1, text_max, *record);
  doc.record = std::move(record);
  return sound;
}

// What follows the version. `count` fields of the document are left.
bool read_version_1(cursor& in, std::uint64_t count, bool condemned, std::uint32_t text_max, core::document& doc) {
  const std::uint64_t expected = condemned ? 8 : 6;
  if (count < expected) {
    return false;
  }
  std::uint64_t attempt = 0;
  if (!in.read_bytes(doc.key) || !in.read_uint(attempt) || attempt == 0 ||
      attempt > std::numeric_limits<std::uint32_t>::max() || !read_time(in, doc.age)) {
    return false;
  }
  doc.attempt = static_cast<std::uint32_t>(attempt);
  if (!in.read_nil() && !read_time(in, doc.time_left.emplace())) {
    return false;
  }
  if (!in.read_nil() && (!in.read_bytes(doc.headers) || !are_headers(doc.headers))) {
    return false;
  }
  if (!in.read_bytes(doc.payload) || (condemned && !read_verdict(in, text_max, doc))) {
    return false;
  }
  for (auto i = expected; i < count; ++i) {
    if (!in.skip(1)) {
      return false;
    }
  }
  return in.at_end();
}

// A document of another version is only set aside as such when it is sound; anything else would make garbage look like
// a message from the future.
core::document_state other_version(std::string_view bytes) {
  cursor all(bytes);
  return all.skip(0) && all.at_end() ? core::document_state::unsupported_version : core::document_state::malformed;
}

}  // namespace

core::document_state read_document(std::string_view bytes, bool condemned, std::uint32_t text_max,
                                   core::document& doc) {
  using enum core::document_state;
  clear(doc);
  cursor in(bytes);
  std::uint64_t count = 0;
  if (!in.read_array(count)) {
    return malformed;
  }
  if (count == 0 || in.next_is_nil()) {
    return other_version(bytes);
  }
  auto as_signed = in;
  std::uint64_t version = 0;
  std::int64_t negative = 0;
  if (!in.read_uint(version)) {
    return as_signed.read_int(negative) ? other_version(bytes) : malformed;
  }
  if (version != 1) {
    return other_version(bytes);
  }
  if (!read_version_1(in, count - 1, condemned, text_max, doc)) {
    clear(doc);
    return malformed;
  }
  if (doc.key.empty()) {
    return missing_key;
  }
  return doc.key.size() > operation_key::size_max ? key_too_long : ok;
}

bool read_record(cursor& in, unsigned open, std::uint32_t text_max, retry_record& record) {
  std::uint64_t count = 0;
  std::uint64_t attempts = 0;
  std::string_view text;
  std::string_view key;
  if (!in.read_array(count) || count < 9 || !in.read_uint(attempts) ||
      attempts > std::numeric_limits<std::uint32_t>::max() || !read_instant(in, record.first_attempt) ||
      !read_instant(in, record.last_attempt) ||
      !read_choice(in, error_class::none, error_class::uncertain, record.last_error) || !in.read_bytes(text) ||
      text.size() > text_max || !read_instant(in, record.next_attempt) || !read_instant(in, record.deadline) ||
      !read_choice(in, final_state::pending, final_state::unknown, record.state) || !in.read_bytes(key)) {
    return false;
  }
  for (std::uint64_t i = 9; i < count; ++i) {
    if (!in.skip(open + 1)) {
      return false;
    }
  }
  record.attempts = static_cast<std::uint32_t>(attempts);
  record.last_error_text.assign(text);
  record.operation_key.assign(key);
  return true;
}

bool are_headers(std::string_view bytes) {
  cursor in(bytes);
  std::uint64_t count = 0;
  if (!in.read_array(count) || count % 2 != 0 || count > 2 * headers_max) {
    return false;
  }
  for (std::string_view ignored; count > 0; --count) {
    if (!in.read_bytes(ignored)) {
      return false;
    }
  }
  return in.at_end();
}

}  // namespace onay::wire
