// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What the handlers did, written outside the library and before they answered it: the audit's only witness of effects.
//
// Every life of a worker process has a file of its own and appends one record with one write(2). What write(2) took is
// in the page cache and survives a SIGKILL of the process; nothing of it depends on what the library believes.
#pragma once

#include <onay/time.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace onay::sim {

enum class event_kind : std::uint8_t {
  start = 1,    // a handler started
  effect = 2,   // it is about to return `accept`
  failed = 3,   // it is about to return a transient failure
  refused = 4,  // it is about to return a permanent failure
};

struct event {
  std::uint64_t id = 0;       // see keys.hpp
  std::uint32_t at = 0;       // since the run's beginning, in ticks
  std::uint32_t age_ms = 0;   // of the message, as the context said
  std::uint32_t attempt = 0;  // as the context said
  event_kind kind = event_kind::start;
  std::uint16_t life = 0;  // which file it came from; not written
};

// 100 us: fine enough to tell runs apart, and 32 bits of it last for five days.
inline constexpr duration event_tick = std::chrono::microseconds(100);
[[nodiscard]] inline std::uint32_t to_ticks(duration since_beginning) {
  return since_beginning.count() <= 0 ? 0 : static_cast<std::uint32_t>(since_beginning / event_tick);
}

// Thread-safe: the kernel orders appends. Throws std::system_error when the file can't be opened or written: a worker
// that can't say what it does mustn't do it.
class event_writer {
 public:
  event_writer(const std::filesystem::path& file, time_point beginning);
  ~event_writer();
  event_writer(const event_writer&) = delete;
  event_writer& operator=(const event_writer&) = delete;

  void write(event_kind kind, std::uint64_t id, std::uint32_t attempt, duration age) const;

 private:
  int fd_;
  time_point beginning_;
};

// All files of a run as one stream. Within one file the order is the file's (the handler's order, whatever the clock
// says), across files it is by time. Needs constant memory per file and one open file at a time.
class event_reader {
 public:
  // The n-th file belongs to life n; one that doesn't exist is empty (that life never started a handler).
  explicit event_reader(std::vector<std::filesystem::path> files);
  ~event_reader();
  event_reader(const event_reader&) = delete;
  event_reader& operator=(const event_reader&) = delete;

  // False at the end.
  [[nodiscard]] bool next(event& out);
  // Bytes at the ends of files that were no whole record. Nothing explains them but a bug.
  [[nodiscard]] std::uint64_t torn() const { return torn_; }

 private:
  struct source;
  void push(std::uint32_t life);

  std::vector<std::unique_ptr<source>> sources_;
  std::vector<std::uint64_t> heap_;  // time in the upper half, life in the lower: the smallest on top
  std::uint64_t torn_ = 0;
};

}  // namespace onay::sim
