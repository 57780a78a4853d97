// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// SIGINT and SIGTERM as requests to stop. The handlers only write to an event descriptor; a thread reads it, because
// stopping takes locks. signalfd was rejected: it needs the signals blocked in every thread, also in those that the
// application has started before.
#include <onay/consumer.hpp>
#include <onay/error.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

namespace onay {

namespace {

constexpr int signals[] = {SIGINT, SIGTERM};

// Written by the handlers, hence outside of any object, and never closed: a handler may still be about to write to it
// when the object goes. -1: not made yet.
std::atomic<int> bell{-1};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads it");
std::atomic<bool> listening{false};

void ring(int) {
  const int saved = errno;
  if (const int fd = bell.load(); fd >= 0) {
    const std::uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
  }
  errno = saved;
}

}  // namespace

class stop_on_signals::impl {
 public:
  impl(consumer& target, duration deadline) {
    if (listening.exchange(true)) {
      throw setup_error("stop_on_signals: another one exists; there can be one at a time in a process.");
    }
    if (bell < 0) {
      bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    quit_ = eventfd(0, EFD_CLOEXEC);
    if (bell < 0 || quit_ < 0) {
      fail(std::strerror(errno));
    }
    std::uint64_t old = 0;
    (void)!read(bell, &old, sizeof old);
    try {
      thread_ = std::thread([this, &target, deadline] { listen(target, deadline); });
    } catch (const std::system_error& e) {
      fail(e.what());
    }
    struct sigaction action {};
    action.sa_handler = ring;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < std::size(signals); ++i) {
      sigaction(signals[i], &action, &previous_[i]);
    }
  }

  ~impl() {
    for (std::size_t i = 0; i < std::size(signals); ++i) {
      sigaction(signals[i], &previous_[i], nullptr);
    }
    const std::uint64_t one = 1;
    while (write(quit_, &one, sizeof one) < 0 && errno == EINTR) {
    }
    thread_.join();
    close(quit_);
    listening = false;
  }

  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

 private:
  [[noreturn]] void fail(const std::string& why) {
    if (quit_ >= 0) {
      close(quit_);
    }
    listening = false;
    throw setup_error("stop_on_signals: " + why + ".");
  }

  void listen(consumer& target, duration deadline) const {
    std::uint64_t seen = 0;
    for (;;) {
      pollfd fds[] = {{bell, POLLIN, 0}, {quit_, POLLIN, 0}};
      if (poll(fds, 2, -1) < 0) {
        continue;  // interrupted
      }
      if (fds[1].revents != 0) {
        return;
      }
      std::uint64_t count = 0;
      if (read(bell, &count, sizeof count) != sizeof count) {
        continue;
      }
      if (seen == 0) {
        target.request_stop(deadline);
      }
      seen += count;
      if (seen > 1) {
        target.request_stop(duration::zero());
      }
    }
  }

  int quit_ = -1;
  struct sigaction previous_[std::size(signals)] = {};
  std::thread thread_;
};

stop_on_signals::stop_on_signals(consumer& target, duration deadline)
    : impl_(std::make_unique<impl>(target, deadline)) {}
stop_on_signals::~stop_on_signals() = default;

}  // namespace onay
