// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Which delivery starts when, what its end means, and runs that take too long.
#include "core/consumer_core.hpp"

#include <algorithm>
#include <cassert>

namespace onay::core {

// Such a delivery starts only on its sender's word: a suspect, or any of a handler that isn't idempotent.
bool consumer_core::needs_word(const held& d) const {
  return !d.confirmed && ((d.flags & delivery_flag::suspect) != 0 || !config_.retry.handler_is_idempotent);
}

std::size_t consumer_core::stuck() const {
  return std::size_t(std::count_if(running_.begin(), running_.end(), [](const held* d) { return d->timed_out; }));
}

void consumer_core::pump(instant now) {
  if (queue_.empty() || (queue_.front()->flags & delivery_flag::alone) == 0 || paused_ || drain_ != drain_state::none) {
    alone_since_ = never;
  }
  if (paused_ || drain_ != drain_state::none) {
    return;
  }
  if (stuck() >= config_.concurrency) {
    release_queue(now, release_delay());
    for (auto& [id, s] : sessions_) {
      withdraw(*s);
    }
    return;
  }
  // While suspects wait, nothing is dispatched ahead: a slot is then really free when it is offered to one of them.
  while (!queue_.empty() && alone_ == nullptr) {
    const auto ahead = suspects_queued_ > 0 ? 0 : config_.dispatch_ahead;
    if (in_flight() >= std::size_t(config_.concurrency) + ahead || !start_next(now)) {
      return;
    }
  }
}

// False if the first delivery must wait, and all others behind it.
bool consumer_core::start_next(instant now) {
  auto* d = queue_.front();
  const bool asks = needs_word(*d);
  const bool alone = (d->flags & delivery_flag::alone) != 0;
  const auto pop = [&] {
    queue_.pop_front();
    suspects_queued_ -= asks ? 1 : 0;
  };
  if (d->limit <= now.boot && config_.bury != burial::nowhere) {
    pop();
    reject(now, d, reason::too_old, error_class::none, "", false);
    return true;
  }
  if (alone && in_flight() > 0) {
    // On its last attempt after a loss, it runs while nothing else does: should the process die, nobody else is
    // charged.
    if (alone_since_ == never) {
      alone_since_ = now.boot;
    }
    if (stuck() == 0 || now.boot < after(alone_since_, config_.attempt_timeout)) {
      return false;
    }
    pop();
    alone_since_ = never;
    extra e;
    e.delay = release_delay();
    settle_with(now, d, settlement::release, std::move(e));
    return true;
  }
  pop();
  if (alone) {
    alone_ = d;
    alone_since_ = never;
  }
  if (asks) {
    ask(now, d);
  } else {
    to_workers(d);
  }
  return true;
}

void consumer_core::ask(instant, held* d) {
  d->at = held::stage::asking;
  ++asking_;
  d->session->asking.push_back(d->tag);
  d->session->ask_now = true;
}

void consumer_core::confirm_starts(consumer_session& s, const ranges& confirmed) {
  if (s.asking.empty() || confirmed.empty()) {
    return;
  }
  std::erase_if(s.asking, [&](std::uint64_t tag) {
    if (!confirmed.contains(tag)) {
      return false;
    }
    auto* d = s.tags.find(tag)->delivery;
    assert(d != nullptr && d->at == held::stage::asking);
    d->confirmed = true;
    --asking_;
    if (paused_) {
      alone_ = alone_ == d ? nullptr : alone_;
      d->at = held::stage::queued;
      queue_.push_front(d);
    } else {
      to_workers(d);
    }
    return true;
  });
}

void consumer_core::to_workers(held* d) {
  d->at = held::stage::dispatched;
  ++dispatched_;
  ++d->origin->dispatched;
  dispatch.push_back(d);
}

void consumer_core::back_from_workers(held* d) {
  if (d->at == held::stage::dispatched) {
    --dispatched_;
  } else {
    std::erase(running_, d);
  }
  if (alone_ == d) {
    alone_ = nullptr;
  }
  --d->origin->dispatched;
  drop_session_if_unused(*d->origin);
}

void consumer_core::handle_started(instant, held* d, time_point at) {
  if (d->at != held::stage::dispatched) {
    return;
  }
  d->at = held::stage::running;
  --dispatched_;
  d->since = at;
  d->timeout_at = std::min(after(at, config_.attempt_timeout), d->limit);
  running_.push_back(d);
  if (d->session != nullptr) {
    d->session->started_now.push_back(d->tag);
  }
}

void consumer_core::handle_ended(instant now, run_end&& end) {
  auto* d = end.delivery;
  const bool abandoned = d->at == held::stage::abandoned;
  back_from_workers(d);
  if (!end.started) {
    never_started(now, d);
    return;
  }
  ++counters_.starts;
  if (abandoned) {
    // Its message has been settled as an uncertain retry. A success can still spare the next run.
    const auto hash = inbox_.hash(d->key);
    if (end.outcome.accepted() && inbox_.free() > 0 && inbox_.find(d->key, hash) == inbox::none) {
      d->record = inbox_.claim(d->key, hash, fingerprint_of(d->payload));
      if (active_.size() <= d->record) {
        active_.resize(std::size_t(d->record) + 1);
      }
      active_[d->record] = d;
      finish_accepted(now, d, std::move(end.outcome.text));
    } else {
      free_held(d);
    }
  } else if (end.outcome.accepted()) {
    finish_accepted(now, d, std::move(end.outcome.text));
  } else {
    finish_failed(now, d, std::move(end.outcome));
  }
}

void consumer_core::finish_accepted(instant now, held* d, std::string&& result) {
  ++counters_.accepted;
  if (result.size() > config_.result_max) {
    ++counters_.results_dropped;
    result.clear();
  }
  // Recorded before anybody hears of it.
  inbox_.complete(d->record, result);
  pin(d->record, *d);
  if (d->session == nullptr) {
    note_away(now, d->id.sender);
  }
  active_[d->record] = nullptr;
  if (d->next_waiter != nullptr) {
    wake_waiters(now, d, true, result, duration::zero());
  }
  d->record = inbox::none;
  settle_accept(now, d, result);
}

void consumer_core::finish_failed(instant now, held* d, onay::outcome&& o) {
  auto cls = o.cls <= error_class::uncertain ? o.cls : error_class::permanent;
  if (d->timed_out && (cls == error_class::transient || cls == error_class::overload)) {
    // Cut short in the middle: what it calls passing may have happened. What says more than that is believed.
    cls = error_class::uncertain;
  }
  ++counters_.by_error_class[std::size_t(cls)];
  failed_attempt failed;
  failed.cls = cls;
  failed.attempt = d->attempt;
  failed.retry_after = o.retry_after;
  if (d->limit != never) {
    failed.time_left = std::max(d->limit - now.boot, duration::zero());
  }
  const double draw = draw_();
  auto next = decide(failed, config_.retry, draw);
  if (config_.bury == burial::nowhere && next.kind == settlement::reject) {
    next = {settlement::retry, backoff_delay(config_.retry.backoff, d->attempt, draw), reason::none};
  }
  o.text.resize(std::min<std::size_t>(o.text.size(), 1024));
  if (next.kind == settlement::reject) {
    reject(now, d, next.why, cls, std::move(o.text), true);
    return;
  }
  ++counters_.retried;
  extra e;
  e.delay = next.delay;
  e.cls = cls;
  e.text = std::move(o.text);
  e.had_started = true;
  settle_with(now, d, settlement::retry, std::move(e));
}

// Admitted, perhaps dispatched, but no handler ran.
void consumer_core::never_started(instant now, held* d) {
  if (d->session == nullptr) {
    if (d->confirmed || d->at == held::stage::asking) {
      // Its sender may have confirmed a start that never was, and charged it with the loss of the session.
      late_item item{d->id.epoch, d->id.number, settlement::release, false, {}};
      if (auto* s = session_with(d->id.sender)) {
        add_late(*s, item, {});
      } else {
        homeless_late_[d->id.sender].push_back({item, {}, 0});
        note_away(now, d->id.sender);
      }
    }
    drop_claim(d);
    wake_waiters(now, d, false, {}, duration::zero());
    free_held(d);
    return;
  }
  if (drain_ != drain_state::none) {
    settle_with(now, d, settlement::release, {});
    return;
  }
  if (d->limit <= now.boot && config_.bury != burial::nowhere) {
    reject(now, d, reason::too_old, error_class::none, "", false);
    return;
  }
  d->at = held::stage::queued;
  queue_.push_front(d);
}

// Until this delivery's settlement is confirmed the record stays. Of an older life of the sender nothing is pinned: it
// can't hand that message over again, and its numbers mean other messages now.
void consumer_core::pin(inbox::record r, const held& d) {
  const auto* s = session_with(d.id.sender);
  if (s == nullptr || s->terms.epoch == d.id.epoch) {
    inbox_.pin(r, d.id.sender, d.id.epoch, d.id.number);
  }
}

void consumer_core::handle_timeouts(instant now) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    auto* d = running_[i];
    if (now.boot < d->timeout_at) {
      continue;
    }
    d->timed_out = true;
    if (!d->stop_fired) {
      d->stop_fired = true;
      stops.push_back(d);
    }
    if (config_.abandon_after && d->at == held::stage::running &&
        now.boot >= after(d->timeout_at, *config_.abandon_after)) {
      abandon(now, d);
    }
  }
}

// The handler runs on and keeps its slot; its message is settled without it. The option says that runs may overlap
// then.
void consumer_core::abandon(instant now, held* d) {
  auto* copy = new_held();
  copy->key = d->key;
  copy->headers = d->headers;
  copy->payload = d->payload;
  copy->id = d->id;
  copy->attempt = d->attempt;
  copy->born = d->born;
  copy->limit = d->limit;
  copy->buffer = d->buffer;
  copy->session = d->session;
  copy->origin = d->origin;
  copy->tag = d->tag;
  copy->flags = d->flags;
  copy->next_waiter = std::exchange(d->next_waiter, nullptr);
  copy->record = std::exchange(d->record, inbox::none);
  active_[copy->record] = copy;
  d->session = nullptr;
  d->at = held::stage::abandoned;
  if (copy->session == nullptr) {
    drop_claim(copy);
    wake_waiters(now, copy, false, {}, duration::zero());
    free_held(copy);
    return;
  }
  copy->session->tags.find(copy->tag)->delivery = copy;
  finish_failed(now, copy, failure(error_class::uncertain, "the handler ignored its timeout and was abandoned"));
}

void consumer_core::release_queue(instant now, duration delay) {
  auto queue = std::exchange(queue_, {});
  suspects_queued_ = 0;
  for (auto* d : queue) {
    extra e;
    e.delay = delay;
    settle_with(now, d, settlement::release, std::move(e));
  }
}

}  // namespace onay::core
