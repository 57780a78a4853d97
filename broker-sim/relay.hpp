// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A TCP relay on the loopback interface whose connections can be cut, or stalled one way. For faults that only a real
// connection has; tests use it as well.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace onay::sim {

// Listens on 127.0.0.1 and forwards to another port there. Thread-safe.
class relay {
 public:
  enum class way { to_target, from_target };

  // `port` 0: any free one. Throws std::system_error. The target need not exist yet: a connection is refused then.
  explicit relay(std::uint16_t target, std::uint16_t port = 0);
  ~relay();
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Resets all connections at once (RST, no FIN: the ends can't tell it from a crashed router). What the relay holds is
  // lost. New connections are accepted. Returns when it is done.
  void cut();
  // While stalled, bytes of that way stay where they are and the connections stay open: a half-open link.
  void stall(way w, bool on);
  // While refusing, new connections are reset.
  void refuse(bool on);

  [[nodiscard]] std::uint64_t accepted() const { return accepted_.load(); }  // connections so far
  [[nodiscard]] std::uint64_t open() const { return open_.load(); }          // connections now

 private:
  struct connection;
  void run();
  void wake() const;

  std::uint16_t target_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> stalled_[2] = {false, false};
  std::atomic<bool> refusing_ = false;
  std::atomic<std::uint64_t> accepted_ = 0, open_ = 0;
  std::mutex mutex_;
  std::condition_variable cut_done_;
  std::uint64_t cuts_wanted_ = 0, cuts_made_ = 0;  // under mutex_
  std::thread thread_;
};

}  // namespace onay::sim
