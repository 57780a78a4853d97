// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Latencies in constant space: 32 linear steps per power of two, so a percentile is at most 3 % off, whatever it is.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace onay::sim {

class histogram {
 public:
  void add(std::uint64_t us) {
    ++counts_[slot(us)];
    ++total_;
    if (us > max_) max_ = us;
  }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }

  // The value that `share` (0..1) of all are not above; 0 without values.
  [[nodiscard]] double percentile(double share) const {
    if (total_ == 0) return 0;
    auto rank = static_cast<std::uint64_t>(share * static_cast<double>(total_));
    if (rank >= total_) rank = total_ - 1;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank) return middle(i);
    }
    return static_cast<double>(max_);
  }

 private:
  static constexpr unsigned step_bits = 5;
  static constexpr std::size_t steps = 1U << step_bits;

  static std::size_t slot(std::uint64_t us) {
    if (us < steps) return us;
    const auto shift = static_cast<unsigned>(std::bit_width(us)) - step_bits - 1;
    return (shift + 1) * steps + (us >> shift) - steps;
  }
  static double middle(std::size_t slot) {
    if (slot < steps) return static_cast<double>(slot);
    const auto shift = slot / steps - 1;
    const auto low = static_cast<double>(std::uint64_t{slot % steps + steps} << shift);
    return low + static_cast<double>((std::uint64_t{1} << shift) - 1) / 2;
  }

  std::array<std::uint64_t, (64 - step_bits + 1) * steps> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace onay::sim
