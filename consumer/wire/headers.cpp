// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "wire/codec.hpp"
#include "wire/document.hpp"
#include "wire/writer.hpp"

namespace onay::wire {

std::string encode_headers(std::span<const header> headers) {
  std::string out;
  if (headers.empty()) {
    return out;  // none at all is nil in the document, which takes no bytes here
  }
  sink bytes(out);
  writer<sink> w(bytes);
  w.array(2 * headers.size());
  for (const auto& h : headers) {
    w.bytes(h.name);
    w.bytes(h.value);
  }
  bytes.flush();
  return out;
}

bool decode_headers(std::string_view bytes, std::vector<header_view>& out) {
  out.clear();
  if (bytes.empty()) {
    return true;
  }
  if (!are_headers(bytes)) {
    return false;
  }
  cursor in(bytes);
  std::uint64_t count = 0;
  bool sound = in.read_array(count);
  out.reserve(static_cast<std::size_t>(count / 2));
  for (; sound && count > 0; count -= 2) {
    header_view h;
    sound = in.read_bytes(h.name) && in.read_bytes(h.value);
    out.push_back(h);
  }
  return sound;
}

}  // namespace onay::wire
