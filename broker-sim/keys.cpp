// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "keys.hpp"

#include <algorithm>

namespace onay::sim {

key_catalog::key_catalog(const std::vector<std::uint64_t>& ids) : messages_(ids.size()), ids_(ids) {
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  operations_ = ids_.size();
  operation_of_message_.reserve(ids.size());
  for (const auto id : ids) {
    operation_of_message_.push_back(
        static_cast<std::uint32_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin()));
  }
}

std::optional<std::uint64_t> key_catalog::find(std::uint64_t id) const {
  if (ids_.empty()) {
    if (id == 0 || id > operations_) return {};
    return id - 1;
  }
  const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (at == ids_.end() || *at != id) return {};
  return static_cast<std::uint64_t>(at - ids_.begin());
}

}  // namespace onay::sim
