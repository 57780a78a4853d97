// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What must hold for any bytes: one function for the fuzzer and for the unit test that feeds it mutated frames.
#pragma once

#include "support/frame_compare.hpp"
#include "wire/codec.hpp"

#include <onay/dead_letter.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace onay::test {

inline void fuzz_require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "fuzz_decode: %s\n", what);
    std::abort();
  }
}

// Bytes that are read as a command say the same command when they are written and read again, and that writing is
// stable. Aborts otherwise.
inline void fuzz_decode(std::string_view input) {
  // An exact copy on the heap, so that a sanitizer sees the first byte that is read past its end.
  const std::vector<char> exact(input.begin(), input.end());
  const std::string_view bytes(exact.data(), exact.size());

  core::frame first;
  if (const auto problem = wire::decode(bytes, first)) {
    fuzz_require(!problem->text.empty(), "an unreadable frame without a reason");
  } else {
    std::string written;
    wire::encode(first, written);
    core::frame second;
    fuzz_require(!wire::decode(written, second), "our own output is unreadable");
    fuzz_require(same(first, second), "a command changed on its way");
    std::string again;
    wire::encode(second, again);
    fuzz_require(again == written, "the same command was written in two ways");
    if (const auto* d = std::get_if<core::deliver>(&first)) {
      std::vector<header_view> headers;
      for (const auto& item : d->items) {
        fuzz_require(wire::decode_headers(item.doc.headers, headers), "a document's headers can't be read");
      }
    }
  }
  std::vector<header_view> headers;
  static_cast<void>(wire::decode_headers(bytes, headers));
  static_cast<void>(read_dead_letter(bytes));
}

}  // namespace onay::test
