// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Starts loading memory that will be needed soon. A message passes from thread to thread and waits among thousands, so
// each of its cache lines has to be fetched each time; fetched one after the other, that is most of what it costs.
#pragma once

#include <cstddef>

namespace onay::core {

inline void prefetch(const void* at, std::size_t bytes = 1) {
  constexpr std::size_t line = 64;
  for (std::size_t i = 0; i < bytes; i += line) {
    __builtin_prefetch(static_cast<const char*>(at) + i);
  }
}

}  // namespace onay::core
