// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "supervisor.hpp"

#include <fmt/format.h>
#include <csignal>
#include <system_error>

namespace onay::sim {
namespace {

// Restarting "at once" is this late at most.
constexpr auto tick = std::chrono::milliseconds(2);
// A worker that exits by itself this often in a row won't do better the next time.
constexpr unsigned refusals_max = 3;
constexpr int usage_error = 2;
constexpr std::size_t unexplained_max = 5;

}  // namespace

struct supervisor::slot {
  std::optional<process> child;
  std::uint32_t life = 0;
  bool killed = false;   // by us, and
  bool overdue = false;  // because it didn't stop
  unsigned refusals = 0;
};

supervisor::supervisor(settings s) : settings_(std::move(s)) {
  slots_.resize(settings_.workers);
  thread_ = std::thread([this] { run(); });
}

supervisor::~supervisor() {
  if (thread_.joinable()) stop(duration::zero());
}

void supervisor::stop(duration patience) {
  patience_us_ = patience.count();
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string supervisor::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::vector<std::string> supervisor::unexplained() const {
  const std::lock_guard lock(mutex_);
  return unexplained_;
}

std::vector<life> supervisor::lives() const {
  const std::lock_guard lock(mutex_);
  return lives_;
}

void supervisor::start(slot& s, std::uint32_t worker) {
  {
    const std::lock_guard lock(mutex_);
    s.life = static_cast<std::uint32_t>(lives_.size());
    lives_.push_back({.worker = worker});
  }
  s.killed = false;
  try {
    s.child.emplace(settings_.command(worker, s.life));
  } catch (const std::system_error& e) {
    const std::lock_guard lock(mutex_);
    failure_ = e.what();
  }
}

void supervisor::reap(slot& s, std::uint32_t worker, bool restart) {
  if (!s.child) return;
  const auto end = s.child->poll();
  if (!end) return;
  s.child.reset();
  // Told to stop before it had learnt to listen: it had just been started.
  const bool obeyed = !restart && end->signal == SIGTERM;
  {
    const std::lock_guard lock(mutex_);
    auto& l = lives_[s.life];
    l.ended = boot_clock::now();
    if (s.killed) {  // perhaps while it was shooting itself; there is no telling
      l.how = s.overdue ? life::end::overdue : life::end::killed;
      ++(s.overdue ? overdue_ : kills_);
    } else if (!obeyed && (end->signal != 0 || end->code != 0)) {
      l.how = life::end::crashed;
      ++crashes_;
      if (!(settings_.poison && end->signal == SIGKILL) && unexplained_.size() < unexplained_max) {
        unexplained_.push_back(end->signal != 0 ? fmt::format("worker-{} died of signal {}", worker + 1, end->signal)
                                                : fmt::format("worker-{} ended with {}", worker + 1, end->code));
      }
    } else {
      l.how = life::end::stopped;
    }
    s.refusals = end->signal == 0 ? s.refusals + 1 : 0;
    if (restart && s.refusals >= refusals_max && failure_.empty()) {
      failure_ = fmt::format("worker-{} ended by itself {} times in a row (exit code {})", worker + 1, refusals_max,
                             end->code);
    }
    if (restart && end->signal == 0 && end->code == usage_error && failure_.empty()) {
      refused_settings_ = true;
      failure_ = fmt::format("worker-{} refused its settings", worker + 1);
    }
    restart = restart && failure_.empty();
  }
  if (restart) start(s, worker);
}

void supervisor::run() {
  for (std::uint32_t w = 0; w < slots_.size(); ++w) start(slots_[w], w);
  std::optional<time_point> next_kill;
  std::uint32_t turn = 0;
  while (!stopping_) {
    for (std::uint32_t w = 0; w < slots_.size(); ++w) reap(slots_[w], w, true);
    if (settings_.kill_every && killing_) {
      const auto now = boot_clock::now();
      if (!next_kill) next_kill = now + *settings_.kill_every;
      if (now >= *next_kill) {
        *next_kill += *settings_.kill_every;
        if (auto& victim = slots_[turn++ % slots_.size()]; victim.child && !victim.child->poll()) {
          victim.killed = true;
          victim.child->signal(SIGKILL);
        }
      }
    }
    std::this_thread::sleep_for(tick);
  }
  for (auto& s : slots_) {
    if (s.child) s.child->signal(SIGTERM);
  }
  const auto until = boot_clock::now() + duration(patience_us_);
  const auto any_left = [&] {
    bool left = false;
    for (std::uint32_t w = 0; w < slots_.size(); ++w) {
      reap(slots_[w], w, false);
      left = left || slots_[w].child;
    }
    return left;
  };
  while (any_left() && boot_clock::now() < until) std::this_thread::sleep_for(tick);
  for (auto& s : slots_) {
    if (!s.child) continue;
    s.overdue = !s.killed;
    s.killed = true;
    s.child->signal(SIGKILL);
  }
  while (any_left()) std::this_thread::sleep_for(tick);
}

}  // namespace onay::sim
