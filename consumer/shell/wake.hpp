// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Wakes an I/O thread out of its poll.
#pragma once

namespace onay::shell {

// An event descriptor that ZeroMQ's poll can wait on beside its sockets. `signal` from any thread.
class wake {
 public:
  wake();  // throws setup_error
  ~wake();
  wake(const wake&) = delete;
  wake& operator=(const wake&) = delete;

  void signal() noexcept;
  void clear() noexcept;  // I/O thread, after it woke up
  [[nodiscard]] int descriptor() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace onay::shell
