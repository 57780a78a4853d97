// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What a worker's library says about itself, in a file: written every second and at the end, so that a killed worker
// loses the last second of it at most.
#pragma once

#include <onay/consumer.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace onay::sim {

// Sums over a run's workers.
struct worker_totals {
  std::uint64_t starts = 0, accepted = 0, retried = 0, released = 0, rejected = 0, buried = 0, duplicates = 0;
  std::uint64_t lost_leases = 0, bad_frames = 0;
  std::array<std::uint64_t, 7> by_error_class{};
  std::uint64_t queue_depth_max = 0;  // the largest of them
  double rss_max_mib = 0;             // the largest of them
  std::uint64_t unclean_stops = 0;    // stopped with something left unknown
};

class status_file {
 public:
  // Samples from now on, in a thread of its own. An empty path: does nothing.
  status_file(const consumer& source, std::filesystem::path file);
  ~status_file();
  status_file(const status_file&) = delete;
  status_file& operator=(const status_file&) = delete;
  // The last word.
  void finish(const stop_report& report);

  // Adds a file to the totals; one that doesn't exist adds nothing.
  static void add(const std::filesystem::path& file, worker_totals& totals);

 private:
  void run(const std::stop_token& stop);
  void write(const stop_report* report) const;

  const consumer& source_;
  std::filesystem::path file_;
  std::uint64_t queued_max_ = 0;
  std::jthread thread_;
};

}  // namespace onay::sim
