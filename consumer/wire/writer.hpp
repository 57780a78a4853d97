// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// How each kind of field is written, through msgpack-cxx's packer. For .cpp files only: it pulls in msgpack-cxx.
#pragma once

#include "core/ranges.hpp"
#include "wire/codec.hpp"
#include "wire/utf8.hpp"

#ifndef MSGPACK_NO_BOOST
#define MSGPACK_NO_BOOST
#endif
#include <msgpack/pack.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace onay::wire {

// A packer writes a message in some twenty pieces of one to nine bytes. Appending each to a string costs more than the
// bytes do, so they gather here first.
class sink {
 public:
  explicit sink(std::string& out) : out_(out) {}
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;

  // Inlined by force: where the packer's constant size is visible, the copy is one store instead of a call.
  [[gnu::always_inline]] void write(const char* bytes, std::size_t size) {
    if (size <= gathered_.size() - used_) [[likely]] {
      char* to = gathered_.data() + used_;
      if (__builtin_constant_p(size) && size > 1 && size <= 9) {
        // The packer has just stored a code and a number side by side. Loading across the two stores would stall.
        to[0] = bytes[0];
        std::memcpy(to + 1, bytes + 1, size - 1);
      } else {
        std::memcpy(to, bytes, size);
      }
      used_ += size;
    } else {
      write_full(bytes, size);
    }
  }

  // Must be the last call; not in the destructor, since it may throw.
  void flush() {
    out_.append(gathered_.data(), used_);
    used_ = 0;
  }

 private:
  [[gnu::noinline]] void write_full(const char* bytes, std::size_t size) {
    flush();
    if (size > gathered_.size() / 2) {
      out_.append(bytes, size);
    } else {
      write(bytes, size);
    }
  }

  std::string& out_;
  std::size_t used_ = 0;
  std::array<char, 2048> gathered_;  // left uninitialised on purpose
};

// Measures what a sink would get: a document's size stands before the document, and must not be written down twice.
struct measure {
  std::size_t size = 0;
  void write(const char*, std::size_t n) { size += n; }
};

template <class Stream>
class writer {
 public:
  explicit writer(Stream& stream) : stream_(stream), packer_(stream) {}

  void array(std::size_t count) { packer_.pack_array(narrow(count)); }
  void nil() { packer_.pack_nil(); }
  void uint(std::uint64_t value) { packer_.pack_uint64(value); }
  void boolean(bool value) { value ? packer_.pack_true() : packer_.pack_false(); }

  template <class Enum>
  void choice(Enum value) {
    uint(static_cast<std::uint64_t>(value));
  }

  // A negative one would be unreadable at the other end; nothing but a bug makes one, and zero is its nearest meaning.
  void time(duration value) { uint(static_cast<std::uint64_t>(std::max<duration::rep>(value.count(), 0))); }

  void time(const std::optional<duration>& value) { value ? time(*value) : nil(); }
  void uint(const std::optional<std::uint64_t>& value) { value ? uint(*value) : nil(); }
  void uint(const std::optional<std::uint32_t>& value) { value ? uint(std::uint64_t{*value}) : nil(); }

  void instant(const std::optional<utc_time>& value) {
    value ? static_cast<void>(packer_.pack_int64(value->time_since_epoch().count())) : nil();
  }

  void bytes_header(std::size_t size) { packer_.pack_bin(narrow(size)); }
  void raw(std::string_view bytes) {
    if (!bytes.empty()) {
      stream_.write(bytes.data(), bytes.size());
    }
  }
  void bytes(std::string_view value) {
    bytes_header(value.size());
    raw(value);
  }

  // What people read is a `str`, so that a generic tool shows it; a handler's words that aren't UTF-8 go as `bin`.
  void text(std::string_view value) {
    value = cut_text(value, decode_limits{}.text_max);
    is_utf8(value) ? static_cast<void>(packer_.pack_str(narrow(value.size()))) : bytes_header(value.size());
    raw(value);
  }

  void ranges(const core::ranges& value) {
    array(2 * value.range_count());
    std::uint64_t end = 0;
    for (const auto& r : value.list()) {
      uint(r.first - end);
      uint(r.last - r.first);
      end = r.last;
    }
  }

  void record(const retry_record& value) {
    array(9);
    uint(std::uint64_t{value.attempts});
    instant(value.first_attempt);
    instant(value.last_attempt);
    choice(value.last_error);
    text(value.last_error_text);
    instant(value.next_attempt);
    instant(value.deadline);
    choice(value.state);
    bytes(value.operation_key);
  }

 private:
  // msgpack has no sizes above 32 bits. Every option that bounds a message is far below; a larger one here is a bug,
  // and a frame whose sizes are wrong would look like an attack to its reader.
  static std::uint32_t narrow(std::size_t size) {
    if (size > std::numeric_limits<std::uint32_t>::max()) {
      throw std::length_error("onay: more than 4 GiB in one field of a frame");
    }
    return static_cast<std::uint32_t>(size);
  }

  Stream& stream_;
  msgpack::packer<Stream> packer_;
};

}  // namespace onay::wire
