// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Child processes of this program, started from itself.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onay::sim {

// How a process ended: an exit code, or the signal that killed it.
struct process_end {
  int code = 0;
  int signal = 0;
};

// A running copy of this program. Owns the child: a process that is still there in the destructor is killed and reaped.
class process {
 public:
  // posix_spawn, so it may be called with threads and ZeroMQ contexts around. The child gets a process group of its own
  // (Ctrl-C reaches only the parent, which then stops its children in order) and no blocked signals, and it ends with
  // the parent if it calls `die_with_parent`. Throws std::system_error.
  explicit process(const std::vector<std::string>& arguments);
  ~process();
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;

  [[nodiscard]] pid_t id() const { return pid_; }
  void signal(int number) const;
  // Nothing while it runs.
  [[nodiscard]] std::optional<process_end> poll();
  [[nodiscard]] std::optional<process_end> wait_for(std::chrono::milliseconds timeout);

 private:
  pid_t pid_ = -1;
  std::optional<process_end> end_;
};

// Called by a child: SIGKILL when the parent dies. `parent` is whom it expects; if that is gone already, exits.
void die_with_parent(pid_t parent);

// The most memory this process ever had resident, in MiB. Not getrusage: that one starts with the parent's value.
[[nodiscard]] double peak_rss_mib();

// Writes a small file so that readers see all of it or nothing.
void write_whole(const std::filesystem::path& file, const std::string& text);
// Waits until that file exists and returns its text; nothing at the timeout, or when `child` has ended.
[[nodiscard]] std::optional<std::string> await_file(const std::filesystem::path& file, process* child,
                                                    std::chrono::milliseconds timeout);

}  // namespace onay::sim
