// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The parts that are msgpack inside a frame: a delivery's document, a retry record, encoded headers.
#pragma once

#include "core/frames.hpp"
#include "wire/cursor.hpp"

#include <cstdint>
#include <string_view>

namespace onay::wire {

// Fills `doc` and says whether it can be used. Views point into `bytes`. Empty for `malformed` and
// `unsupported_version`, complete for the other states. `condemned` is the delivery's flag.
[[nodiscard]] core::document_state read_document(std::string_view bytes, bool condemned, std::uint32_t text_max,
                                                 core::document& doc);

// The next value as a retry record, inside `open` arrays. False if it isn't one.
[[nodiscard]] bool read_record(cursor& in, unsigned open, std::uint32_t text_max, retry_record& record);

// The next value as a duration: whole microseconds, not negative, at most 2^63-1. False if it isn't one.
[[nodiscard]] inline bool read_time(cursor& in, duration& value) {
  std::uint64_t us = 0;
  if (!in.read_uint(us) || us > static_cast<std::uint64_t>(duration::max().count())) {
    return false;
  }
  value = duration(static_cast<duration::rep>(us));
  return true;
}

// The next value as one of a closed list of codes.
template <class Enum>
[[nodiscard]] bool read_choice(cursor& in, Enum first, Enum last, Enum& value) {
  std::uint64_t code = 0;
  if (!in.read_uint(code) || code < static_cast<std::uint64_t>(first) || code > static_cast<std::uint64_t>(last)) {
    return false;
  }
  value = static_cast<Enum>(code);
  return true;
}

// 64 KiB of headers, the most that a sender takes, hold no more than this: an empty name and an empty value are four
// bytes. A reader's memory is bounded by it.
inline constexpr std::uint64_t headers_max = 16'384;

// Whether it is a flat array of an even number of byte strings, with nothing after it.
[[nodiscard]] bool are_headers(std::string_view bytes);

}  // namespace onay::wire
