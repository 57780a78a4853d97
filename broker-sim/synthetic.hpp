// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What the synthetic handler does to a message: decided here, done in worker.cpp.
#pragma once

#include "draws.hpp"

#include <onay/time.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace onay::sim {

enum class fate { accept, fail, reject, kill };

struct synthetic_options {
  duration handler_time{};
  double fail = 0;    // transient, per attempt
  double reject = 0;  // permanent, per message
  std::uint64_t seed = 1;
  std::vector<std::uint64_t> poison;  // ids that kill the worker each time, sorted
};

// Poison before rejection before failure: a key that kills never gets as far as being refused.
[[nodiscard]] inline fate fate_of(const synthetic_options& options, std::uint64_t id, std::uint32_t attempt) {
  if (std::binary_search(options.poison.begin(), options.poison.end(), id)) return fate::kill;
  if (options.reject > 0 && to_unit(draw(options.seed, stream::reject, id)) < options.reject) return fate::reject;
  if (options.fail > 0 && to_unit(draw(options.seed, stream::fail, id, attempt)) < options.fail) return fate::fail;
  return fate::accept;
}

// `wanted` different indices below `count`, chosen by the seed, ascending; all of them when there are not more.
[[nodiscard]] inline std::vector<std::uint64_t> choose_poison(std::uint64_t seed, std::uint64_t count,
                                                              std::uint64_t wanted) {
  std::vector<std::uint64_t> chosen;
  wanted = std::min(wanted, count);
  for (std::uint64_t n = 0; chosen.size() < wanted; ++n) {
    const auto index = draw(seed, stream::poison, n) % count;
    const auto at = std::lower_bound(chosen.begin(), chosen.end(), index);
    if (at == chosen.end() || *at != index) chosen.insert(at, index);
  }
  return chosen;
}

}  // namespace onay::sim
