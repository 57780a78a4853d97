// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/wake.hpp"

#include <onay/error.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace onay::shell {

wake::wake() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ < 0) {
    throw setup_error(std::string("no event descriptor: ") + std::strerror(errno) +
                      ". Raise the descriptor limit (ulimit -n); trying again makes sense once some are free.");
  }
}

wake::~wake() { close(fd_); }

void wake::signal() noexcept {
  const std::uint64_t one = 1;
  // EAGAIN means that the counter is full: it is signalled.
  while (write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void wake::clear() noexcept {
  std::uint64_t count = 0;
  while (read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace onay::shell
