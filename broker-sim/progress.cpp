// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>

namespace onay::sim {

progress::progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

progress::~progress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void progress::show(const upstream& u, std::uint64_t messages, std::uint64_t deaths) {
  if (!terminal_) return;
  const auto now = boot_clock::now();
  const auto since = now - last_;
  if (since < std::chrono::milliseconds(200)) return;
  const auto& book = u.book();
  const auto settled = book.settled();
  const double rate =
      drawn_ ? static_cast<double>(settled - settled_before_) * 1e6 / static_cast<double>(since.count()) : 0;
  fmt::print(stderr, "\r{} of {} sent, {} settled ({} dead), {:.0f}/s, {} waiting, {} worker deaths\x1b[K", book.sent(),
             messages, settled, book.dead_lettered(), rate, book.sent() - std::min(settled, book.sent()), deaths);
  std::fflush(stderr);
  drawn_ = true;
  last_ = now;
  settled_before_ = settled;
}

interruptions::interruptions() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

unsigned interruptions::count() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  const timespec now{0, 0};
  while (::sigtimedwait(&set, nullptr, &now) > 0) {
    ++count_;
    fmt::print(stderr, "{}\n",
               count_ == 1
                   ? "\nbroker-sim: interrupted: sends nothing more and waits for what was sent; once more gives up"
                   : "\nbroker-sim: gives up on what is unsettled");
  }
  return count_;
}

}  // namespace onay::sim
