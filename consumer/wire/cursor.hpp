// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Reads msgpack value by value: the caller says what it expects, and gets that or false.
//
// Why not msgpack::unpack: it builds a tree of objects first and asks what was wanted afterwards, so whoever writes the
// bytes decides how much is allocated and how deep it goes. Here nothing is allocated, nothing recurses, byte strings
// are views into the frame, and a count is compared with the bytes that are left before anybody reserves for it. The
// tests compare it with msgpack-cxx's packer and unpacker.
//
// Strict where leniency would hide a mistake: integers only as integers (never floats or digits in a string), and a
// `str` must be UTF-8. Lenient where encoders differ: any width and signedness of an integer, `bin` or `str` for bytes.
#pragma once

#include "wire/utf8.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace onay::wire {

class cursor {
 public:
  // Arrays and maps that may be open at once, the outermost one included.
  static constexpr unsigned depth_max = 16;

  explicit cursor(std::string_view bytes)
      : at_(reinterpret_cast<const unsigned char*>(bytes.data())), end_(at_ + bytes.size()) {}

  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] bool next_is_nil() const { return at_ != end_ && *at_ == 0xc0; }

  // Every read returns false when the next value is something else or isn't all there. The position means nothing then.

  // Takes a nil if the next value is one.
  bool read_nil() {
    if (!next_is_nil()) {
      return false;
    }
    ++at_;
    return true;
  }

  bool read_bool(bool& value) {
    if (at_ == end_ || (*at_ != 0xc2 && *at_ != 0xc3)) {
      return false;
    }
    value = *at_++ == 0xc3;
    return true;
  }

  bool read_uint(std::uint64_t& value) {
    if (at_ == end_) {
      return false;
    }
    if (*at_ < 0x80) {
      value = *at_++;
      return true;
    }
    bool negative = false;
    return read_wide_int(value, negative) && !negative;
  }

  bool read_int(std::int64_t& value) {
    if (at_ == end_) {
      return false;
    }
    std::uint64_t bits = 0;
    bool negative = false;
    if (*at_ < 0x80) {
      bits = *at_++;
    } else if (*at_ >= 0xe0) {
      bits = ~std::uint64_t{0xff} | *at_++;  // the byte is the number's low one, all above it are ones
      negative = true;
    } else if (!read_wide_int(bits, negative)) {
      return false;
    }
    value = static_cast<std::int64_t>(bits);
    return negative || value >= 0;
  }

  // A `bin`, or a `str` that is UTF-8: the same bytes.
  bool read_bytes(std::string_view& value) {
    if (at_ == end_) {
      return false;
    }
    const unsigned char head = *at_++;
    std::uint64_t size = 0;
    bool text = false;
    if (head == 0xc4 || head == 0xd9) {
      if (!load(1, size)) {
        return false;
      }
      text = head == 0xd9;
    } else if ((head & 0xe0U) == 0xa0) {
      size = head & 0x1fU;
      text = true;
    } else if (head == 0xc5 || head == 0xda) {
      if (!load(2, size)) {
        return false;
      }
      text = head == 0xda;
    } else if (head == 0xc6 || head == 0xdb) {
      if (!load(4, size)) {
        return false;
      }
      text = head == 0xdb;
    } else {
      return false;
    }
    return take(size, text, value);
  }

  // The header of an array. `count` is at most the number of bytes that are left, since an element takes at least one.
  bool read_array(std::uint64_t& count) {
    if (at_ == end_) {
      return false;
    }
    const unsigned char head = *at_++;
    if ((head & 0xf0U) == 0x90) {
      count = head & 0x0fU;
    } else if (head == 0xdc) {
      if (!load(2, count)) {
        return false;
      }
    } else if (head != 0xdd || !load(4, count)) {
      return false;
    }
    return count <= left();
  }

  // Steps over one value of any kind, inside `open` arrays that the caller has entered.
  bool skip(unsigned open);

 private:
  // `size` (1, 2, 4 or 8) bytes, big-endian. With one load for each size and a constant at most call sites, this is a
  // move and a byte swap.
  bool load(unsigned size, std::uint64_t& value) {
    if (left() < size) {
      return false;
    }
    switch (size) {
      case 1:
        value = at_[0];
        break;
      case 2:
        value = std::uint64_t{at_[0]} << 8U | at_[1];
        break;
      case 4:
        value = big_endian_32(at_);
        break;
      default:
        value = big_endian_32(at_) << 32U | big_endian_32(at_ + 4);
        break;
    }
    at_ += size;
    return true;
  }

  static std::uint64_t big_endian_32(const unsigned char* p) {
    return std::uint64_t{p[0]} << 24U | std::uint64_t{p[1]} << 16U | std::uint64_t{p[2]} << 8U | p[3];
  }

  bool take(std::uint64_t size, bool text, std::string_view& value) {
    if (size > left()) {
      return false;
    }
    value = {reinterpret_cast<const char*>(at_), static_cast<std::size_t>(size)};
    at_ += size;
    return !text || is_utf8(value);
  }

  // uint 8..64 and int 8..64. `value` is sign-extended.
  bool read_wide_int(std::uint64_t& value, bool& negative) {
    const unsigned char head = *at_;
    if (head < 0xcc || head > 0xd3) {
      return false;
    }
    ++at_;
    negative = false;
    switch (head) {
      case 0xcc:
        return load(1, value);
      case 0xcd:
        return load(2, value);
      case 0xce:
        return load(4, value);
      case 0xcf:
        return load(8, value);
      default:
        break;
    }
    const unsigned size = 1U << (head - 0xd0U);
    if (!load(size, value)) {
      return false;
    }
    const unsigned shift = 64U - 8U * size;
    const auto extended = static_cast<std::int64_t>(value << shift) >> shift;
    value = static_cast<std::uint64_t>(extended);
    negative = extended < 0;
    return true;
  }

  // What the head of a value says about the rest: `body` bytes, then `children` values.
  struct shape {
    std::uint64_t body = 0;
    std::uint64_t children = 0;
    bool container = false;
    bool text = false;
  };
  bool read_shape(shape& s);

  const unsigned char* at_;
  const unsigned char* end_;
};

inline bool cursor::read_shape(shape& s) {
  if (at_ == end_) {
    return false;
  }
  const unsigned char head = *at_++;
  if (head < 0x80 || head >= 0xe0) {
    return true;  // small integers
  }
  if (head < 0xa0) {
    s.container = true;
    s.children = head < 0x90 ? 2ULL * (head & 0x0fU) : head & 0x0fU;
    return true;
  }
  if (head < 0xc0) {
    s.text = true;
    s.body = head & 0x1fU;
    return true;
  }
  switch (head) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return load(1U << (head - 0xc4U), s.body);
    case 0xc7:
    case 0xc8:
    case 0xc9:  // ext: the size leaves out the type
      if (!load(1U << (head - 0xc7U), s.body)) {
        return false;
      }
      s.body += 1;
      return true;
    case 0xca:
      s.body = 4;
      return true;
    case 0xcb:
      s.body = 8;
      return true;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      s.body = 1U << (head - 0xccU);
      return true;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      s.body = 1U << (head - 0xd0U);
      return true;
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      s.body = 1U + (1U << (head - 0xd4U));
      return true;
    case 0xd9:
    case 0xda:
    case 0xdb:
      s.text = true;
      return load(1U << (head - 0xd9U), s.body);
    case 0xdc:
    case 0xdd:
      s.container = true;
      return load(head == 0xdc ? 2 : 4, s.children);
    case 0xde:
    case 0xdf:
      s.container = true;
      if (!load(head == 0xde ? 2 : 4, s.children)) {
        return false;
      }
      s.children *= 2;
      return true;
    default:
      return false;  // 0xc1 is never used
  }
}

inline bool cursor::skip(unsigned open) {
  std::array<std::uint64_t, depth_max> todo;  // values left in each array or map that this value has open
  unsigned depth = 0;
  for (;;) {
    shape s;
    std::string_view body;
    if (!read_shape(s) || !take(s.body, s.text, body)) {
      return false;
    }
    if (s.container) {
      if (open + depth >= depth_max || s.children > left()) {
        return false;
      }
      if (s.children > 0) {
        todo[depth++] = s.children;
        continue;
      }
    }
    while (depth > 0 && --todo[depth - 1] == 0) {
      --depth;
    }
    if (depth == 0) {
      return true;
    }
  }
}

}  // namespace onay::wire
