// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Two questions about text: is it UTF-8, and where may it be cut.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace onay::wire {

// As RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] inline bool is_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = p + text.size();
  const auto tail = [](unsigned char c) { return (c & 0xc0U) == 0x80U; };
  while (p != end) {
    if (end - p >= 8) {  // most text is ASCII
      std::uint64_t word = 0;
      std::memcpy(&word, p, sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        p += sizeof word;
        continue;
      }
    }
    const unsigned char c = *p;
    if (c < 0x80) {
      p += 1;
    } else if (c >= 0xc2 && c <= 0xdf) {
      if (end - p < 2 || !tail(p[1])) {
        return false;
      }
      p += 2;
    } else if ((c & 0xf0U) == 0xe0) {
      if (end - p < 3 || !tail(p[1]) || !tail(p[2]) || (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f)) {
        return false;
      }
      p += 3;
    } else if (c >= 0xf0 && c <= 0xf4) {
      if (end - p < 4 || !tail(p[1]) || !tail(p[2]) || !tail(p[3]) || (c == 0xf0 && p[1] < 0x90) ||
          (c == 0xf4 && p[1] > 0x8f)) {
        return false;
      }
      p += 4;
    } else {
      return false;
    }
  }
  return true;
}

// At most `size_max` bytes of it, never half a character (of text that isn't UTF-8: up to three bytes fewer).
[[nodiscard]] inline std::string_view cut_text(std::string_view text, std::size_t size_max) {
  if (text.size() <= size_max) {
    return text;
  }
  auto size = size_max;
  for (int i = 0; i < 3 && size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U; ++i) {
    --size;
  }
  return text.substr(0, size);
}

}  // namespace onay::wire
