// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "worker.hpp"

#include "effects.hpp"
#include "process.hpp"
#include "worker_status.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

namespace onay::sim {
namespace {

// Works for `how_long`; false if it was told to stop before the end. A short time is slept in one piece: the handler
// that sleeps is a stand-in for one that waits for somebody.
bool work(duration how_long, const context& c) {
  constexpr duration piece = std::chrono::milliseconds(10);
  const auto until = boot_clock::now() + how_long;
  for (auto left = how_long; left > duration::zero(); left = until - boot_clock::now()) {
    if (c.stop_requested()) return false;
    std::this_thread::sleep_for(std::min(left, piece));
  }
  return true;
}

class synthetic_handler {
 public:
  synthetic_handler(synthetic_options options, key_style style, std::shared_ptr<const event_writer> events)
      : options_(std::move(options)), style_(style), events_(std::move(events)) {}

  outcome operator()(const delivery& d, context& c) const {
    const auto id = id_of(d.key(), style_);
    say(event_kind::start, id, c);
    const auto fate = fate_of(options_, id, c.attempt());
    if (fate == fate::kill) {
      // In the middle of its work, like a crash that a message causes.
      std::this_thread::sleep_for(options_.handler_time / 2);
      ::raise(SIGKILL);
    }
    if (options_.handler_time > duration::zero() && !work(options_.handler_time, c)) {
      say(event_kind::failed, id, c);
      return failure(error_class::transient, "told to stop before it was done");
    }
    switch (fate) {
      case fate::reject:
        say(event_kind::refused, id, c);
        return failure(error_class::permanent, "made up: permanent");
      case fate::fail:
        say(event_kind::failed, id, c);
        return failure(error_class::transient, "made up: transient");
      default:
        say(event_kind::effect, id, c);
        return accept();
    }
  }

 private:
  void say(event_kind kind, std::uint64_t id, const context& c) const {
    if (events_) events_->write(kind, id, c.attempt(), kind == event_kind::start ? c.age() : duration::zero());
  }

  synthetic_options options_;
  key_style style_;
  std::shared_ptr<const event_writer> events_;
};

consumer_options to_consumer(const worker_options& o) {
  const auto& s = o.settings;
  consumer_options c;
  for (const auto& address : o.connect) c.endpoints.push_back(connect(address));
  for (const auto& address : o.bind) c.endpoints.push_back(bind(address));
  c.handler = idempotence::idempotent;
  if (o.discard) {
    c.dead_letters = discard{};
  } else {
    c.dead_letters = dead_letter_to{connect(o.dead_letters)};
  }
  c.logical_id = o.logical_id;
  if (s.concurrency) c.concurrency = *s.concurrency;
  if (s.attempts) c.attempts_max = *s.attempts;
  if (s.age_max) c.age_max = *s.age_max;
  if (s.attempt_timeout) c.attempt_timeout = *s.attempt_timeout;
  // The library refuses a timeout that isn't below the age limit; whoever shortens only the latter means both.
  if (s.age_max && !s.attempt_timeout) c.attempt_timeout = std::min(c.attempt_timeout, *s.age_max / 2);
  if (s.credit) c.credit_max = *s.credit;
  if (s.credit_bytes) {
    c.credit_bytes_max = {*s.credit_bytes};
    c.payload_max.bytes = std::min(c.payload_max.bytes, *s.credit_bytes / 2);
  }
  if (s.backoff_base) c.backoff.base = *s.backoff_base;
  if (s.backoff_cap) c.backoff.cap = *s.backoff_cap;
  return c;
}

}  // namespace

int run_worker(const worker_options& options) {
  if (options.parent) die_with_parent(*options.parent);
  // Threads inherit it: a handler time of 200 us should take 200 us and not 250.
  ::prctl(PR_SET_TIMERSLACK, 1UL);

  auto handler = options.settings.handler;
  for (const auto& key : options.poison_keys) handler.poison.push_back(id_of(key, options.style));
  std::sort(handler.poison.begin(), handler.poison.end());

  const auto beginning = options.beginning_us ? time_point(duration(*options.beginning_us)) : boot_clock::now();
  std::shared_ptr<const event_writer> events;
  if (!options.events.empty()) events = std::make_shared<const event_writer>(options.events, beginning);

  stop_report report;
  {
    consumer worker(to_consumer(options), synthetic_handler(std::move(handler), options.style, std::move(events)));
    const stop_on_signals signals(worker, options.drain);
    worker.start();
    if (!options.addresses.empty()) {
      std::string text;
      for (const auto& address : worker.addresses()) text += address + "\n";
      write_whole(options.addresses, text);
    }
    status_file status(worker, options.status);
    report = worker.run();
    status.finish(report);
  }
  if (!report.error.empty()) {
    fmt::print(stderr, "broker-sim: {}: {}\n", options.logical_id.empty() ? "worker" : options.logical_id,
               report.error);
    return 1;
  }
  return 0;
}

}  // namespace onay::sim
