// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Random numbers: from the system where two lives must differ, from a seeded generator where only spread matters.
#pragma once

#include "core/instant.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace onay::shell {

// Throws std::system_error if the system has no entropy to give.
void fill_random(void* out, std::size_t size);
[[nodiscard]] std::uint64_t random_bits();
// 32 hexadecimal digits.
[[nodiscard]] std::string random_name();

// Unbuffered: a buffer would be shared with a forked child, and it is asked for a few numbers a session.
class system_entropy final : public core::entropy {
 public:
  std::uint64_t next() override { return random_bits(); }
};

// Uniform in [0, 1), for backoff. Owned by one thread.
class jitter {
 public:
  explicit jitter(std::uint64_t seed) : engine_(seed) {}
  double operator()() { return double(engine_() >> 11U) * 0x1.0p-53; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace onay::shell
