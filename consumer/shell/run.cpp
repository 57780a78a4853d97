// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/run.hpp"

#include <exception>
#include <utility>

namespace onay::shell {

namespace {

thread_local run* called = nullptr;
thread_local int exceptions_before = 0;

}  // namespace

calling::calling(run& r) {
  called = &r;
  exceptions_before = std::uncaught_exceptions();
}

calling::~calling() { called = nullptr; }

void workshop::add(run& r) {
  const std::lock_guard lock(runs_mutex);
  r.index = runs.size();
  runs.push_back(&r);
}

void workshop::remove(run& r) {
  const std::lock_guard lock(runs_mutex);
  runs[r.index] = runs.back();
  runs[r.index]->index = r.index;
  runs.pop_back();
}

void run::begin(core::held* d) {
  key = d->key;
  headers = d->headers;
  payload = d->payload;
  id = d->id;
  attempt = d->attempt;
  born = d->born;
  held = d;
  if (async) {
    buffer = d->buffer;
  }
  const std::lock_guard lock(stop_mutex);
  ++generation;
  source.reset();
  fired.store(false, std::memory_order_relaxed);
  started_at.store(0, std::memory_order_relaxed);
  current.store(d, std::memory_order_release);
}

// Read by the only thread that lets the core forget a delivery, so what it finds is never one that is gone.
run::sight run::look() const {
  auto* d = current.load(std::memory_order_acquire);
  const auto at = started_at.load(std::memory_order_acquire);
  if (d == nullptr || at == 0 || current.load(std::memory_order_acquire) != d) {
    return {};
  }
  return {d, time_point(duration(at))};
}

std::optional<std::uint64_t> run::generation_of(const core::held* d) {
  const std::lock_guard lock(stop_mutex);
  if (current.load(std::memory_order_acquire) != d) {
    return {};
  }
  return generation;
}

void run::fire(std::uint64_t of_generation) {
  std::optional<std::stop_source> firing;
  {
    const std::lock_guard lock(stop_mutex);
    if (generation != of_generation) {
      return;
    }
    fired.store(true, std::memory_order_release);
    firing = source;
  }
  if (firing) {
    firing->request_stop();  // runs the user's stop callbacks, hence no lock
  }
}

std::stop_token run::token() {
  const std::lock_guard lock(stop_mutex);
  if (!source) {
    source.emplace();
    if (stopped()) {
      source->request_stop();  // nobody has a callback on it yet
    }
  }
  return source->get_token();
}

void run::settle(outcome o) {
  if (!async || ended.exchange(true)) {
    return;
  }
  const auto keep = std::move(self);
  home->remove(*this);
  end();
  home->queue.give_back();
  home->ends.post({held, true, std::move(o)});
}

void run::drop() {
  if (!async) {
    return;
  }
  if (called == this && std::uncaught_exceptions() > exceptions_before) {
    thrown_out = true;
    return;
  }
  settle(failure(error_class::uncertain, "dropped unsettled"));
}

}  // namespace onay::shell
