// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The real clocks, as the cores want them.
#pragma once

#include "core/instant.hpp"

namespace onay::shell {

// Both clocks at once; read once or twice a turn of the I/O loop, not once a frame.
[[nodiscard]] core::instant read_clocks() noexcept;

// A wait as the standard library's condition variables take it: `d` from now, bounded so that nothing overflows.
[[nodiscard]] std::chrono::steady_clock::time_point steady_after(duration d) noexcept;

}  // namespace onay::shell
