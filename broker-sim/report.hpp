// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The audit as people and programs read it.
#pragma once

#include "audit.hpp"
#include "faults.hpp"
#include "histogram.hpp"
#include "worker_status.hpp"

#include <onay/sender.hpp>

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

namespace onay::sim {

struct run_report {
  audit_result audit;
  sender_status sender;
  worker_totals workers;
  fault_counts faults;
  std::uint64_t seed = 0;
  std::uint64_t worker_kills = 0, worker_crashes = 0, link_cuts = 0;
  std::uint64_t outbox_max = 0;
  double elapsed_s = 0;  // first send to last receipt
  histogram latency;     // us, send to receipt of the accepted ones
  double rss_upstream_mib = 0;
  bool has_workers = true;  // false: they are somebody else's, and what only they know is not known
  bool effects_known = true;
  std::filesystem::path letters;  // the collector's file; empty: not known

  [[nodiscard]] double throughput() const;
};

void print_table(const run_report& r, std::ostream& out);
// What the numbers mean, for somebody who sees them for the first time.
void print_explanation(const run_report& r, std::ostream& out);
// One object. What isn't known is null.
void print_json(const run_report& r, std::ostream& out);

}  // namespace onay::sim
