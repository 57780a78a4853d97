// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Made-up order records, one JSON object a line: an input for `run --key-field id` on machines that have none.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace onay::sim {

// The same records for the same seed, everywhere.
void write_records(std::ostream& out, std::uint64_t count, std::uint64_t seed);

}  // namespace onay::sim
