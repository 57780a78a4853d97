// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Hashes of keys (seeded, 64 bits, for tables) and of payloads (unseeded, 128 bits, to tell one payload from another).
// Neither is cryptographic.
#pragma once

#include <cstdint>
#include <string_view>

namespace onay::core {

struct fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const fingerprint&, const fingerprint&) = default;
};

[[nodiscard]] std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed);
// The same on every machine and in every version: stores keep it.
[[nodiscard]] fingerprint fingerprint_of(std::string_view bytes);

}  // namespace onay::core
