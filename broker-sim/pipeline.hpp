// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The processes around the upstream of a run: collector, workers, and the relays between them.
#pragma once

#include "process.hpp"
#include "relay.hpp"
#include "run.hpp"
#include "supervisor.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace onay::sim {

// The directory that a run's files are in.
class run_directory {
 public:
  // Empty: a new temporary one, removed in the destructor. Otherwise that one; files of an earlier run are removed.
  explicit run_directory(const std::string& wanted);
  ~run_directory();
  run_directory(const run_directory&) = delete;
  run_directory& operator=(const run_directory&) = delete;

  [[nodiscard]] std::filesystem::path letters() const { return path_ / "dead-letters.jsonl"; }
  [[nodiscard]] std::filesystem::path collector_address() const { return path_ / "collector.address"; }
  [[nodiscard]] std::filesystem::path worker_address(std::uint32_t worker) const;
  [[nodiscard]] std::filesystem::path events(std::uint32_t life) const;
  [[nodiscard]] std::filesystem::path status(std::uint32_t life) const;

 private:
  std::filesystem::path path_;
  bool temporary_;
};

class pipeline {
 public:
  // Starts the collector (and stops it again, where it has to be away at first). `poison`: ids.
  pipeline(const run_options& options, const run_directory& directory, std::vector<std::uint64_t> poison,
           time_point beginning);
  ~pipeline();
  pipeline(const pipeline&) = delete;
  pipeline& operator=(const pipeline&) = delete;

  // Where the upstream should listen, or whom it should call. With workers that bind, starts them.
  [[nodiscard]] std::vector<endpoint> upstream_endpoints();
  // Starts the workers, if they don't run yet, towards the address that the upstream got.
  void start_workers(const std::string& upstream_address);

  void start_faults();  // kills and cuts
  void stop_faults();
  // Stops the workers, then the collector.
  void stop();

  [[nodiscard]] const supervisor& workers() const { return *supervisor_; }
  // The collector did what it was told until the end.
  [[nodiscard]] bool collector_sound() const { return collector_sound_; }
  [[nodiscard]] std::uint64_t link_cuts() const;
  [[nodiscard]] std::vector<std::uint32_t> cuts() const;  // in ticks
  // To be called now and then, from one thread: brings the collector back when it is time to. Says why there is no
  // sense in going on; empty while there is.
  [[nodiscard]] std::string look_after();

 private:
  std::vector<std::string> command(std::uint32_t worker, std::uint32_t life) const;
  void start_supervisor();
  void cut_now_and_then(const std::stop_token& stop);

  const run_options& options_;
  const run_directory& directory_;
  std::vector<std::uint64_t> poison_;
  time_point beginning_;
  process collector_;
  std::string collector_address_;
  bool collector_away_ = false;
  bool collector_sound_ = true;
  std::optional<time_point> collector_back_;             // when it has to come back
  std::string upstream_address_;                         // that workers connect to
  std::vector<std::atomic<std::uint16_t>> worker_port_;  // where they bind; 0: not known yet
  std::vector<std::unique_ptr<relay>> relays_;
  std::unique_ptr<supervisor> supervisor_;
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> cuts_;  // under mutex_
  std::jthread cutter_;
};

}  // namespace onay::sim
