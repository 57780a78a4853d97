// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Bytes that our own encoder would never write, made with msgpack-cxx's packer or by hand.
#pragma once

#ifndef MSGPACK_NO_BOOST
#define MSGPACK_NO_BOOST
#endif
#include <msgpack.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace onay::test {

struct text_stream {
  std::string bytes;
  void write(const char* p, std::size_t n) { bytes.append(p, n); }
};

using raw_packer = msgpack::packer<text_stream>;

// What `fill(packer)` packs.
template <class F>
std::string packed(F&& fill) {
  text_stream s;
  raw_packer p(s);
  std::forward<F>(fill)(p);
  return std::move(s.bytes);
}

inline void put_bin(raw_packer& p, std::string_view bytes) {
  p.pack_bin(static_cast<std::uint32_t>(bytes.size()));
  p.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

inline void put_str(raw_packer& p, std::string_view bytes) {
  p.pack_str(static_cast<std::uint32_t>(bytes.size()));
  p.pack_str_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

inline std::string repeated(std::string_view what, std::size_t times) {
  std::string s;
  s.reserve(what.size() * times);
  for (; times > 0; --times) {
    s += what;
  }
  return s;
}

}  // namespace onay::test
