// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Keeps the worker processes of a run alive, and kills them in turn where that is asked for.
#pragma once

#include "process.hpp"

#include <onay/time.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace onay::sim {

// One process of a worker, from its start to its end. Its place in the list is its name in the effect files.
struct life {
  enum class end { running, stopped, killed, crashed, overdue };  // overdue: ignored the order to stop
  std::uint32_t worker = 0;
  end how = end::running;
  std::optional<time_point> ended;
};

class supervisor {
 public:
  struct settings {
    std::uint32_t workers = 1;
    std::optional<duration> kill_every;
    bool poison = false;  // workers may kill themselves
    // The command line of one life of one worker.
    std::function<std::vector<std::string>(std::uint32_t worker, std::uint32_t life)> command;
  };

  explicit supervisor(settings s);
  // Kills what still runs.
  ~supervisor();
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  // Killing starts now, not with the workers: a run's first seconds would otherwise be a start-up test.
  void start_killing() { killing_ = true; }
  void stop_killing() { killing_ = false; }
  // SIGTERM to all; SIGKILL to those that are still there after `patience`. Nothing is restarted any more.
  void stop(duration patience);

  [[nodiscard]] std::uint64_t kills() const { return kills_; }      // ours
  [[nodiscard]] std::uint64_t crashes() const { return crashes_; }  // everything else that wasn't an ordinary end
  [[nodiscard]] std::uint64_t overdue() const { return overdue_; }
  // Why it gave up restarting: a worker that refuses to run. Empty while all is well.
  [[nodiscard]] std::string failure() const;
  // Ends that nobody asked for: a signal that isn't poison's SIGKILL, an exit code. In words, the first few.
  [[nodiscard]] std::vector<std::string> unexplained() const;
  // The failure is that the workers call their command line wrong.
  [[nodiscard]] bool refused_settings() const { return refused_settings_; }
  // All lives so far.
  [[nodiscard]] std::vector<life> lives() const;

 private:
  struct slot;
  void run();
  void start(slot& s, std::uint32_t worker);
  void reap(slot& s, std::uint32_t worker, bool restart);

  settings settings_;
  std::atomic<bool> killing_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> refused_settings_ = false;
  std::atomic<std::int64_t> patience_us_ = 0;
  std::atomic<std::uint64_t> kills_ = 0, crashes_ = 0, overdue_ = 0;
  mutable std::mutex mutex_;
  std::vector<life> lives_;               // under mutex_
  std::string failure_;                   // under mutex_
  std::vector<std::string> unexplained_;  // under mutex_
  std::vector<slot> slots_;               // supervising thread
  std::thread thread_;  // starts and reaps: a child's parent-death signal is tied to the thread that made it
};

}  // namespace onay::sim
