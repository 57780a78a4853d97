// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "units.hpp"

#include <array>
#include <limits>
#include <utility>

namespace onay::sim {
namespace {

using unit = std::pair<std::string_view, std::uint64_t>;

constexpr std::array<unit, 5> time_units{
    {{"us", 1}, {"ms", 1'000}, {"s", 1'000'000}, {"m", 60'000'000}, {"h", 3'600'000'000}}};
constexpr std::array<unit, 5> size_units{
    {{"", 1}, {"B", 1}, {"KiB", 1U << 10U}, {"MiB", 1U << 20U}, {"GiB", 1U << 30U}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads digits from the front; nothing if there are none or they don't fit.
std::optional<std::uint64_t> take_digits(std::string_view& text) {
  std::uint64_t value = 0;
  std::size_t used = 0;
  for (; used < text.size() && is_digit(text[used]); ++used) {
    const auto digit = static_cast<std::uint64_t>(text[used] - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return {};
    value = value * 10 + digit;
  }
  if (used == 0) return {};
  text.remove_prefix(used);
  return value;
}

template <std::size_t N>
std::optional<std::uint64_t> factor_of(const std::array<unit, N>& units, std::string_view name) {
  for (const auto& [text, factor] : units) {
    if (text == name) return factor;
  }
  return {};
}

std::optional<std::uint64_t> times(std::uint64_t value, std::uint64_t factor) {
  constexpr auto max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value > max / factor) return {};
  return value * factor;
}

}  // namespace

std::optional<duration> parse_duration(std::string_view text) {
  const auto whole = take_digits(text);
  if (!whole) return {};
  std::string_view fraction;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    std::size_t used = 0;
    while (used < text.size() && is_digit(text[used])) ++used;
    if (used == 0) return {};
    fraction = text.substr(0, used);
    text.remove_prefix(used);
  }
  const auto factor = factor_of(time_units, text);
  if (!factor) return {};
  auto us = times(*whole, *factor);
  if (!us) return {};
  // 1.5s: each digit is worth a tenth of the one before. What falls below a microsecond was not meant.
  auto worth = *factor;
  for (const char c : fraction) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (worth == 0 && digit != 0) return {};
    if (worth % 10 != 0) {
      if (digit * worth % 10 != 0) return {};
      *us += digit * worth / 10;
      worth = 0;
      continue;
    }
    worth /= 10;
    *us += digit * worth;
  }
  if (*us > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
  return duration(static_cast<std::int64_t>(*us));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto count = take_digits(text);
  if (!count) return {};
  const auto factor = factor_of(size_units, text);
  if (!factor) return {};
  return times(*count, *factor);
}

std::string to_text(duration d) {
  const auto us = d.count();
  if (us == 0) return "0s";
  const auto* best = &time_units.front();
  for (const auto& candidate : time_units) {
    if (us % static_cast<std::int64_t>(candidate.second) == 0) best = &candidate;
  }
  return std::to_string(us / static_cast<std::int64_t>(best->second)).append(best->first);
}

std::string size_to_text(std::uint64_t bytes) {
  const auto* best = &size_units.front();
  for (const auto& candidate : size_units) {
    if (bytes != 0 && bytes % candidate.second == 0 && candidate.second > 1) best = &candidate;
  }
  return std::to_string(bytes / best->second).append(best->first);
}

}  // namespace onay::sim
