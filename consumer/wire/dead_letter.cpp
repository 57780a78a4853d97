// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A dead letter is an ordinary message whose payload is one msgpack array:
// [version, sender, epoch, number, origin, reason, record, headers, payload].
#include "wire/codec.hpp"
#include "wire/document.hpp"
#include "wire/writer.hpp"

namespace onay::wire {
namespace {

constexpr std::uint64_t letter_version = 1;
constexpr std::uint64_t letter_fields = 9;

bool read_letter(std::string_view bytes, dead_letter& letter) {
  cursor in(bytes);
  std::uint64_t count = 0;
  std::uint64_t version = 0;
  std::string_view origin;
  std::string_view encoded_headers;
  std::string_view payload;
  if (!in.read_array(count) || count < letter_fields || !in.read_uint(version) || version != letter_version ||
      !in.read_uint(letter.id.sender) || !in.read_uint(letter.id.epoch) || !in.read_uint(letter.id.number) ||
      letter.id.number == 0 || !in.read_bytes(origin) || origin.size() > logical_id_size_max ||
      !read_choice(in, reason::attempts_exhausted, reason::unsupported_version, letter.why)) {
    return false;
  }
  if (!in.read_nil() && !read_record(in, 1, decode_limits{}.text_max, letter.record)) {
    return false;
  }
  if (!in.read_nil() && (!in.read_bytes(encoded_headers) || !are_headers(encoded_headers))) {
    return false;
  }
  if (!in.read_bytes(payload)) {
    return false;
  }
  for (auto i = letter_fields; i < count; ++i) {
    if (!in.skip(1)) {
      return false;
    }
  }
  if (!in.at_end()) {
    return false;
  }
  // Nothing above has copied more than the record: a letter that isn't one costs nothing.
  std::vector<header_view> views;
  if (!decode_headers(encoded_headers, views)) {
    return false;
  }
  letter.headers.reserve(views.size());
  for (const auto& h : views) {
    letter.headers.push_back({std::string(h.name), std::string(h.value)});
  }
  letter.origin.assign(origin);
  letter.payload.assign(payload);
  return true;
}

}  // namespace

void encode_dead_letter(const dead_letter_parts& parts, std::string& out) {
  out.clear();
  sink bytes(out);
  writer<sink> w(bytes);
  w.array(letter_fields);
  w.uint(letter_version);
  w.uint(parts.id.sender);
  w.uint(parts.id.epoch);
  w.uint(parts.id.number);
  w.text(parts.origin);
  w.choice(parts.why);
  parts.record != nullptr ? w.record(*parts.record) : w.nil();
  parts.headers.empty() ? w.nil() : w.bytes(parts.headers);
  w.bytes(parts.payload);
  bytes.flush();
}

std::string dead_letter_key(const message_id& id) {
  std::string key;
  key.reserve(24);
  for (const auto part : {id.sender, id.epoch, id.number}) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      key.push_back(static_cast<char>(part >> shift & 0xffU));
    }
  }
  return key;
}

}  // namespace onay::wire

namespace onay {

std::optional<dead_letter> read_dead_letter(std::string_view payload) {
  dead_letter letter;
  if (!wire::read_letter(payload, letter)) {
    return std::nullopt;
  }
  return letter;
}

}  // namespace onay
