// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Chance without state. What befalls a message is a hash of seed, message and attempt, so that it is the same in every
// worker, in every life of a worker and in every run with that seed, however the threads were scheduled.
#pragma once

#include <cstdint>
#include <string_view>

namespace onay::sim {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// FNV-1a, mixed. Not the library's hash: the audit owes nothing to what it checks.
[[nodiscard]] constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return mix(h);
}

// Uniform in [0, 1).
[[nodiscard]] constexpr double to_unit(std::uint64_t h) { return static_cast<double>(h >> 11U) * 0x1p-53; }

// Independent questions about the same message get different streams.
enum class stream : std::uint64_t { fail = 1, reject = 2, poison = 3, faults = 4, records = 5 };

[[nodiscard]] constexpr std::uint64_t draw(std::uint64_t seed, stream s, std::uint64_t id, std::uint64_t attempt = 0) {
  return mix(mix(mix(mix(seed) ^ static_cast<std::uint64_t>(s)) ^ id) ^ attempt);
}

// A sequence, for faults: what befalls the n-th frame of a link.
class sequence {
 public:
  explicit sequence(std::uint64_t seed) : state_(mix(seed ^ static_cast<std::uint64_t>(stream::faults))) {}
  [[nodiscard]] std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15U); }
  [[nodiscard]] bool chance(double p) { return p > 0 && to_unit(next()) < p; }

 private:
  std::uint64_t state_;
};

}  // namespace onay::sim
