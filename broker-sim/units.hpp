// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Durations and sizes as people type and read them.
#pragma once

#include <onay/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onay::sim {

// "250ms", "1.5s", "5m": digits, at most one point, and one of us, ms, s, m, h. A number without a unit is refused: the
// reader of a command line should never have to guess. Negative, empty and overflowing ones are refused too, and what
// a microsecond can't hold.
[[nodiscard]] std::optional<duration> parse_duration(std::string_view text);

// "4096", "64KiB", "4MiB", "1GiB": whole bytes; a plain number is bytes, "B" is allowed.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

// The shortest exact spelling that `parse_duration` reads back: "1500ms", "5s".
[[nodiscard]] std::string to_text(duration d);
// "64MiB", or plain bytes where no larger unit is exact.
[[nodiscard]] std::string size_to_text(std::uint64_t bytes);

}  // namespace onay::sim
