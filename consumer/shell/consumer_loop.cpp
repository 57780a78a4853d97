// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The consumer's I/O thread.
#include "core/prefetch.hpp"
#include "shell/clock.hpp"
#include "shell/consumer_impl.hpp"
#include "shell/why_idle.hpp"

#include <algorithm>
#include <utility>

namespace onay {

namespace {

// See sender_loop.cpp.
constexpr duration timers_longest = std::chrono::milliseconds(50);
constexpr std::chrono::milliseconds last_linger(200);
// A handler that has run for this long is announced by a frame of its own (protocol, rule 22).
constexpr duration announced_after = std::chrono::milliseconds(10);
// Looking at the workers costs a cache line each, so not every turn of a busy loop.
constexpr duration watch_every = std::chrono::milliseconds(5);
// What a stop may take beyond its deadline, to say good-bye to the senders and to the collector.
constexpr duration stop_grace = std::chrono::milliseconds(250);
constexpr duration letters_grace = std::chrono::milliseconds(100);

}  // namespace

void consumer::impl::io_main() {
  const auto begin = shell::read_clocks();
  link_.start(begin);
  if (letters_) {
    letters_->start(begin);
  }
  for (;;) {
    const auto now = shell::read_clocks();
    const bool busy = turn(now);
    if (stopped_by_now(now.boot)) {
      break;
    }
    if (!busy) {
      sleep();
    }
  }
  last_words();
}

// True if another turn should follow at once.
bool consumer::impl::turn(core::instant now) {
  bool busy = take_ends(now);
  if (letters_) {
    core_.set_burial_room(letters_->room(), letters_->room_bytes());
  }
  const auto received = link_.receive(now);
  fire_stops();
  busy = received.any || busy;
  bool dry = received.dry;
  if (letters_) {
    const auto answers = letters_->receive(now);
    busy = answers.any || busy;
    dry = answers.dry && dry;
  }
  busy = take_commands(now) || busy;
  watch_starts(now, stop_deadline_ != core::never);
  fire_overdue_stops(now.boot);
  if (dry || now.boot - last_timers_ >= timers_longest) {
    judge_timers(now);
    last_timers_ = now.boot;
  }
  core_.flush(now);
  fire_stops();
  if (!core_.dispatch.empty()) {
    home_->queue.push(core_.dispatch);
    core_.dispatch.clear();
  }
  busy = link_.send(now) || busy;
  if (letters_) {
    for (auto* d : core_.burials) {
      letters_->bury(now, {d->id, d->why, d->retries.get(), d->headers, d->payload, d});
    }
    if (const auto size = core_.take_burial_wish(); size > 0) {
      letters_->want(now, size);
    }
    busy = letters_->flush(now, buried_) || !buried_.empty() || busy;
    for (const auto& b : std::exchange(buried_, {})) {
      core_.handle_buried(now, static_cast<core::held*>(b.owner));
    }
  }
  core_.burials.clear();
  return busy;
}

bool consumer::impl::take_ends(core::instant now) {
  if (!home_->ends.take(ends_)) {
    return false;
  }
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (i + 4 < ends_.size()) {
      core::prefetch(ends_[i + 4].delivery, sizeof(core::held));
    }
    core_.handle_ended(now, std::move(ends_[i]));
  }
  ends_.clear();
  return true;
}

bool consumer::impl::take_commands(core::instant now) {
  if (!commands_.take(taken_commands_)) {
    return false;
  }
  for (auto& c : taken_commands_) {
    c(now);
  }
  taken_commands_.clear();
  return true;
}

void consumer::impl::judge_timers(core::instant now) {
  core_.handle_time(now);
  link_.handle_time(now);
  if (letters_) {
    letters_->handle_time(now);
  }
  fire_stops();
  if (stop_deadline_ == core::never && !sockets_.binds() && !core_.hopeful()) {
    // Every sender has refused it by name or by version; none of them will ask it back.
    stop_error_ = core_.refused_by_peer().empty() ? "every sender refused this consumer" : core_.refused_by_peer();
    begin_stop(now, now.boot);
  }
}

// Tells the core which deliveries have started. `at_once`: however short ago; a drain must not take them for queued.
void consumer::impl::watch_starts(core::instant now, bool at_once) {
  if (!core_.wants_start_watch() ||
      (!at_once && now.boot - last_watch_ < std::min(watch_every, options_.attempt_timeout / 4))) {
    return;
  }
  last_watch_ = now.boot;
  const auto threshold = at_once ? duration::zero() : std::min(announced_after, options_.attempt_timeout / 2);
  std::uint32_t stuck = 0;
  {
    const std::lock_guard lock(home_->runs_mutex);
    for (auto* r : home_->runs) {
      const auto seen = r->look();
      if (seen.delivery == nullptr || now.boot - seen.since < threshold) {
        continue;
      }
      stuck += now.boot - seen.since >= options_.attempt_timeout ? 1 : 0;
      if (const auto start = seen.since.time_since_epoch().count(); r->reported != start) {
        r->reported = start;
        core_.handle_started(now, seen.delivery, seen.since);
      }
    }
  }
  if (stuck >= options_.concurrency) {
    reclaim(now);  // nothing that waits behind stuck handlers would ever be taken
  }
}

// Takes back what was dispatched and no worker has taken.
void consumer::impl::reclaim(core::instant now) {
  home_->queue.reclaim(reclaimed_);
  // The core puts each before all others, so the last one goes first.
  for (auto d = reclaimed_.rbegin(); d != reclaimed_.rend(); ++d) {
    core::run_end end;
    end.delivery = *d;
    end.started = false;
    core_.handle_ended(now, std::move(end));
  }
  reclaimed_.clear();
}

// Before the core may forget the deliveries that it names.
void consumer::impl::fire_stops() {
  if (core_.stops.empty()) {
    return;
  }
  {
    const std::lock_guard lock(home_->runs_mutex);
    std::sort(core_.stops.begin(), core_.stops.end());
    for (auto* r : home_->runs) {
      auto* d = r->now_at();
      if (d == nullptr || !std::binary_search(core_.stops.begin(), core_.stops.end(), d)) {
        continue;
      }
      if (const auto generation = r->generation_of(d)) {
        firings_.push_back({r->shared_from_this(), *generation});
      }
    }
  }
  core_.stops.clear();
  if (!firings_.empty()) {
    stop_callbacks_.post(firings_);
  }
}

// Past the deadline of a stop every attempt is told, also one that began too late for the core to have seen it start.
void consumer::impl::fire_overdue_stops(time_point now) {
  if (stop_deadline_ == core::never || now < stop_deadline_) {
    return;
  }
  {
    const std::lock_guard lock(home_->runs_mutex);
    for (auto* r : home_->runs) {
      auto* d = r->now_at();
      if (d == nullptr || r->stopped()) {
        continue;
      }
      if (const auto generation = r->generation_of(d)) {
        firings_.push_back({r->shared_from_this(), *generation});
      }
    }
  }
  if (!firings_.empty()) {
    stop_callbacks_.post(firings_);
  }
}

void consumer::impl::begin_stop(core::instant now, time_point deadline) {
  home_->hold.store(true, std::memory_order_release);
  reclaim(now);
  watch_starts(now, true);
  stop_deadline_ = std::min(stop_deadline_, deadline);
  core_.begin_drain(now, stop_deadline_);
}

bool consumer::impl::stopped_by_now(time_point now) {
  return stop_deadline_ != core::never && (core_.drain_done() || now >= core::after(stop_deadline_, stop_grace));
}

void consumer::impl::sleep() {
  if (!home_->ends.sleep() || !commands_.sleep()) {
    return;
  }
  poll_items_.clear();
  poll_items_.push_back({nullptr, home_->bell.descriptor(), ZMQ_POLLIN, 0});
  link_.watch(poll_items_);
  const auto now = boot_clock::now();
  auto deadline = std::min(core_.next_deadline(), link_.next_deadline(now));
  if (letters_) {
    letters_->watch(poll_items_);
    deadline = std::min(deadline, letters_->next_deadline(now));
  }
  if (core_.wants_start_watch()) {
    deadline = std::min(deadline, core::after(now, std::min(announced_after, options_.attempt_timeout / 2)));
  }
  if (stop_deadline_ != core::never) {
    deadline = std::min(deadline, core::after(stop_deadline_, stop_grace));
  }
  (void)zmq_poll(poll_items_.data(), int(poll_items_.size()), shell::poll_timeout_ms(now, deadline));
  if ((poll_items_[0].revents & ZMQ_POLLIN) != 0) {
    home_->bell.clear();
  }
  const auto later = shell::read_clocks();
  link_.watched(later, poll_items_);
  if (letters_) {
    letters_->watched(later, poll_items_);
  }
}

void consumer::impl::last_words() {
  auto now = shell::read_clocks();
  fire_overdue_stops(now.boot);
  if (letters_) {
    letters_->begin_close(now);
    const auto until = now.boot + letters_grace;
    for (; now.boot < until; now = shell::read_clocks()) {
      letters_->flush(now, buried_);
      if (letters_->close_done()) {
        break;
      }
      if (!letters_->receive(now).any) {
        poll_items_.clear();
        letters_->watch(poll_items_);
        (void)zmq_poll(poll_items_.data(), int(poll_items_.size()), 10);
      }
    }
    letters_->close(last_linger);
  }
  home_->queue.close();
  home_->ends.close();
  sockets_.close(last_linger);
  const std::lock_guard lock(mutex_);
  report_ = report();
  final_ = look();
  commands_.close();
  stage_ = stage::stopped;
  changed_.notify_all();
}

stop_report consumer::impl::report() {
  const auto r = core_.report();
  stop_report result;
  result.settled = r.settled;
  result.released = r.released;
  result.running = r.running;
  result.unconfirmed = r.unconfirmed;
  result.dead_letters = r.dead_letters;
  result.error = stop_error_;
  result.clean = r.running == 0 && r.unconfirmed == 0 && r.dead_letters == 0 && stop_error_.empty();
  return result;
}

consumer_status consumer::impl::look() {
  const auto v = core_.look();
  const auto& c = core_.counters();
  consumer_status s;
  // The core learns of a start after some milliseconds; the queue knows it now.
  const auto at_workers = v.dispatched + v.running;
  s.running = std::min<std::uint64_t>(home_->queue.running(), at_workers);
  s.stuck = std::min(v.stuck, s.running);
  s.queued = v.queued + v.asking + at_workers - s.running;
  s.waiting_for_key = v.waiting;
  s.burying = v.burying;
  s.unconfirmed = v.unconfirmed;
  s.held_bytes = v.held_bytes;
  s.starts = c.starts;
  s.accepted = c.accepted;
  s.retried = c.retried;
  s.released = c.released;
  s.rejected = c.rejected;
  s.buried = c.buried;
  s.duplicates = c.duplicates;
  s.lost_leases = c.lost_leases;
  s.bad_frames = c.bad_frames;
  s.malformed = c.malformed;
  s.results_dropped = c.results_dropped;
  s.inbox_records = core_.records().size();
  s.inbox_pinned = core_.records().pinned();
  std::copy(std::begin(c.by_error_class), std::end(c.by_error_class), std::begin(s.by_error_class));
  s.refused = core_.refused_by_peer();
  if (letters_) {
    s.collector_connected = letters_->connected();
    s.refused_by_collector = letters_->refused_by_peer();
  }
  shell::idle_facts f;
  f.stopped = stage_ != stage::running;
  f.draining = core_.draining();
  f.paused = core_.paused();
  f.sessions = v.sessions;
  f.queued = s.queued - std::min(s.queued, v.asking);
  f.running = s.running;
  f.stuck = s.stuck;
  f.concurrency = options_.concurrency;
  f.inbox_free = core_.records().free();
  f.asking = v.asking;
  s.why_idle = shell::why_idle(f);
  return s;
}

}  // namespace onay
