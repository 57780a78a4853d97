// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Reads the fields of one command in order, and remembers the first that isn't what it has to be. After that every read
// gives a zero at once, so that the code which lists the fields needs no check between them.
#pragma once

#include "core/ranges.hpp"
#include "wire/codec.hpp"
#include "wire/cursor.hpp"
#include "wire/document.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onay::wire {

class fields {
 public:
  static constexpr std::uint64_t uint_max = std::numeric_limits<std::uint64_t>::max();

  // The lists may take half of what a frame may cost (see codec.hpp). The other half is for strings that are copied:
  // each byte once, and what an allocator rounds short ones up to.
  fields(std::string_view bytes, const decode_limits& limits)
      : in_(bytes), limits_(limits), memory_(2 * std::uint64_t{bytes.size()} + (1U << 20U)) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const char* failed_field() const { return field_; }
  [[nodiscard]] const char* expectation() const { return expectation_; }

  void fail(const char* field, const char* expectation) {
    if (!failed_) {
      failed_ = true;
      field_ = field;
      expectation_ = expectation;
    }
  }

  // --- arrays: `auto outer = f.begin(...); ... f.end(outer, ...)` ---

  // Enters an array whose elements are fields; `end` steps over those that nobody has read.
  std::uint64_t begin(const char* field) {
    std::uint64_t count = 0;
    if (take(field) && !in_.read_array(count)) {
      fail(field, "an array");
    }
    const auto outer = left_;
    left_ = failed_ ? 0 : count;
    ++open_;
    return outer;
  }

  void end(std::uint64_t outer, const char* field) {
    for (; !failed_ && left_ > 0; --left_) {
      if (!in_.skip(open_)) {
        fail(field, "sound msgpack after the known fields");
      }
    }
    left_ = outer;
    --open_;
  }

  // Enters a list whose elements become `T`s, and sizes it. Its elements hold what they held; assign every field.
  template <class T>
  std::uint64_t begin_list(const char* field, std::vector<T>& out) {
    const auto outer = begin(field);
    const auto count = left_;
    if (count > limits_.items_max || !afford(count, sizeof(T))) {
      fail(field, "fewer items");
    }
    if (failed_) {
      left_ = 0;
    }
    out.reserve(static_cast<std::size_t>(left_));  // `resize` alone may double
    out.resize(static_cast<std::size_t>(left_));
    return outer;
  }

  // The whole command.
  void begin_command() {
    left_ = 1;
    begin("command");
  }
  void end_command() {
    end(0, "command");
    if (!failed_ && !in_.at_end()) {
      fail("command", "nothing after it");
    }
  }

  // --- single fields ---

  std::uint64_t uint(const char* field, std::uint64_t least = 0, std::uint64_t most = uint_max) {
    std::uint64_t value = 0;
    if (!take(field)) {
      return 0;
    }
    if (!in_.read_uint(value) || value < least || value > most) {
      fail(field, "an integer in range");
      return 0;
    }
    return value;
  }

  template <class T>
  T uint_of(const char* field, std::uint64_t least = 0, std::uint64_t most = std::numeric_limits<T>::max()) {
    return static_cast<T>(uint(field, least, most));
  }

  std::optional<std::uint64_t> optional_uint(const char* field, std::uint64_t least = 0,
                                             std::uint64_t most = uint_max) {
    if (nil(field)) {
      return std::nullopt;
    }
    return uint(field, least, most);
  }

  template <class Enum>
  Enum choice(const char* field, Enum first, Enum last) {
    Enum value = first;
    if (take(field) && !read_choice(in_, first, last, value)) {
      fail(field, "a code of the list");
    }
    return value;
  }

  bool boolean(const char* field) {
    bool value = false;
    if (take(field) && !in_.read_bool(value)) {
      fail(field, "true or false");
    }
    return value;
  }

  duration time(const char* field) {
    duration value{};
    if (take(field) && !read_time(in_, value)) {
      fail(field, "microseconds up to 2^63-1");
    }
    return value;
  }

  std::string_view bytes(const char* field) {
    std::string_view value;
    if (take(field) && !in_.read_bytes(value)) {
      fail(field, "bin or UTF-8 str");
    }
    return value;
  }

  std::string_view text(const char* field) {
    const auto value = bytes(field);
    if (value.size() > limits_.text_max) {
      fail(field, "a shorter text");
    }
    return value;
  }

  void record(const char* field, std::optional<retry_record>& out) {
    out.reset();
    if (nil(field)) {
      return;
    }
    if (take(field) && !read_record(in_, open_, limits_.text_max, out.emplace())) {
      fail(field, "a retry record or nil");
    }
  }

  void ranges(const char* field, core::ranges& out);

  // Takes a nil if that is next.
  bool nil(const char* field) {
    if (!failed_ && left_ > 0 && in_.read_nil()) {
      --left_;
      return true;
    }
    if (left_ == 0) {
      fail(field, "to be there");
    }
    return false;
  }

  [[nodiscard]] const decode_limits& limits() const { return limits_; }

 private:
  bool take(const char* field) {
    if (failed_) {
      return false;
    }
    if (left_ == 0) {
      fail(field, "to be there");
      return false;
    }
    --left_;
    return true;
  }

  // Takes memory out of the frame's allowance. `count` is below 2^32.
  bool afford(std::uint64_t count, std::uint64_t size) {
    const auto needed = count * size;
    if (needed > memory_) {
      return false;
    }
    memory_ -= needed;
    return true;
  }

  cursor in_;
  const decode_limits& limits_;
  std::uint64_t memory_;
  std::uint64_t left_ = 0;  // elements of the innermost open array
  unsigned open_ = 0;
  bool failed_ = false;
  const char* field_ = "";
  const char* expectation_ = "";
};

inline void fields::ranges(const char* field, core::ranges& out) {
  out.clear();
  const auto outer = begin(field);
  if (left_ % 2 != 0 || left_ / 2 > limits_.ranges_max || !afford(left_ / 2, sizeof(core::range))) {
    fail(field, "fewer ranges, each of two integers");
  }
  if (!failed_) {
    out.reserve(static_cast<std::size_t>(left_ / 2));
    std::uint64_t end = 0;
    while (left_ > 0 && !failed_) {
      // A gap of 0 would overlap the range before; tags count from 1, so this holds for the first one too.
      const auto first = end + uint(field, 1, uint_max - end);
      end = first + uint(field, 0, uint_max - first);
      if (!failed_) {
        out.append({first, end});
      }
    }
  }
  left_ = outer;
  --open_;
}

}  // namespace onay::wire
