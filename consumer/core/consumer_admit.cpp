// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// From a DELIVER frame to the queue: tags, sizes, documents, the inbox, deliveries that wait for another of their key.
#include "core/consumer_core.hpp"
#include "core/prefetch.hpp"

#include <algorithm>
#include <cassert>

namespace onay::core {

namespace {

// What a document may take beside the bytes that its size counts: field headers, attempt, ages.
constexpr std::uint64_t document_overhead = 256;
constexpr std::uint64_t condemned_overhead = 4096;  // and the retry record
constexpr duration collector_pause = std::chrono::seconds(1);

reason reason_of(document_state state) {
  switch (state) {
    case document_state::unsupported_version:
      return reason::unsupported_version;
    case document_state::missing_key:
      return reason::missing_key;
    case document_state::key_too_long:
      return reason::key_too_long;
    case document_state::malformed:
    case document_state::ok:
      break;
  }
  return reason::malformed;
}

}  // namespace

void consumer_core::handle(instant now, consumer_session& s, const deliver& f,
                           const std::shared_ptr<const void>& buffer) {
  // First the hashes of all keys, so that the index's cache lines are on their way while the first ones are admitted.
  std::uint64_t hashes[64];
  const auto& items = f.items;
  for (std::size_t start = 0; start < items.size(); start += std::size(hashes)) {
    const auto count = std::min(std::size(hashes), items.size() - start);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = inbox_.hash(items[start + i].doc.key);
      inbox_.prefetch(hashes[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto& item = items[start + i];
      const auto tag = f.first_tag + start + i;
      if (tag > s.counted_tag) {
        return close_session(now, s, error_code::credit_overrun, std::uint8_t(frame_type::deliver),
                             "more messages were sent than granted");
      }
      if (tag > s.highest_seen) {
        if (tag > s.highest_seen + 1) {
          s.missing.insert({s.highest_seen + 1, tag - 1});
        }
        s.highest_seen = tag;
      } else if (!s.missing.erase(tag)) {
        if ((item.flags & delivery_flag::nil) != 0) {
          take_back(now, s, tag);
        }
        continue;  // a copy of one that came
      }
      if (item.size > s.counted_bytes - std::min(s.counted_bytes, s.bytes_seen) ||
          item.raw.size() >
              item.size + ((item.flags & delivery_flag::condemned) != 0 ? condemned_overhead : document_overhead)) {
        return close_session(now, s, error_code::credit_overrun, std::uint8_t(frame_type::deliver),
                             "more bytes were sent than granted");
      }
      s.bytes_seen += item.size;
      s.backlog -= std::min<std::uint64_t>(s.backlog, 1);
      admit(now, s, tag, item, buffer, hashes[i]);
    }
  }
}

void consumer_core::admit(instant now, consumer_session& s, std::uint64_t tag, const deliver_item& item,
                          const std::shared_ptr<const void>& buffer, std::uint64_t key_hash) {
  ++counters_.deliveries;
  slot fresh;
  fresh.number = item.number;
  fresh.size = item.size;
  if ((item.flags & delivery_flag::nil) != 0) {
    auto* t = s.tags.insert(tag, std::move(fresh));
    mark_settled(now, s, tag, *t, settlement::release, std::make_unique<extra>());
    return;
  }
  auto* d = new_held();
  d->session = &s;
  d->origin = &s;
  d->tag = tag;
  d->flags = item.flags;
  d->id = {s.terms.sender_id, s.terms.epoch, item.number};
  d->buffer = buffer;
  d->startable_until = &s.startable_until;
  fresh.delivery = d;
  s.tags.insert(tag, std::move(fresh));

  const auto& doc = item.doc;
  if (item.state != document_state::ok) {
    ++counters_.malformed;
    d->key = doc.key;
    d->headers = item.state == document_state::missing_key || item.state == document_state::key_too_long
                     ? doc.headers
                     : std::string_view{};
    d->payload = item.state == document_state::missing_key || item.state == document_state::key_too_long ? doc.payload
                                                                                                         : item.raw;
    if (config_.bury == burial::nowhere) {
      extra e;
      e.delay = collector_pause;
      return settle_with(now, d, settlement::release, std::move(e));
    }
    if ((item.flags & delivery_flag::condemned) != 0) {
      // It was condemned for that very reason, and comes back to be buried.
      d->why = doc.why != reason::none ? doc.why : reason_of(item.state);
      if (doc.record) {
        d->retries = std::make_unique<retry_record>(*doc.record);
      }
      return bury(now, d);
    }
    return reject(now, d, reason_of(item.state), error_class::none, "the document can't be used", false);
  }
  d->key = doc.key;
  d->headers = doc.headers;
  d->payload = doc.payload;
  d->attempt = doc.attempt;
  // Ages and times left are whatever the wire says: kept within the clock's range.
  const auto age = std::min<duration>(doc.age, now.boot.time_since_epoch());
  d->born = now.boot - age;
  d->limit = doc.time_left ? after(now.boot, *doc.time_left) : never;
  bool overdue = doc.time_left && *doc.time_left <= duration::zero();
  if (config_.age_max) {
    overdue = overdue || doc.age >= *config_.age_max;
    d->limit = std::min(
        d->limit, after(now.boot, std::max(duration::zero(), *config_.age_max - std::min(doc.age, *config_.age_max))));
  }
  if ((item.flags & delivery_flag::condemned) != 0) {
    d->why = doc.why;
    if (doc.record) {
      d->retries = std::make_unique<retry_record>(*doc.record);
    }
    return bury(now, d);
  }
  if (overdue) {
    d->limit = now.boot;
  }
  if (config_.bury == burial::nowhere) {
    d->limit = never;  // a collector takes letters of any age
  } else if (item.size > config_.largest_message) {
    return reject(now, d, reason::too_large, error_class::none, "larger than this consumer takes", false);
  }
  if (drain_ != drain_state::none) {
    return settle_with(now, d, settlement::release, {});
  }
  admit_key(now, d, key_hash);
}

// The sender has settled it otherwise: unless it has started, it is let go.
void consumer_core::take_back(instant now, consumer_session& s, std::uint64_t tag) {
  auto* t = s.tags.find(tag);
  if (t == nullptr || t->settled || t->delivery == nullptr) {
    return;
  }
  auto* d = t->delivery;
  switch (d->at) {
    case held::stage::queued:
      std::erase(queue_, d);
      suspects_queued_ -= needs_word(*d) ? 1 : 0;
      break;
    case held::stage::asking:
      std::erase(s.asking, tag);
      --asking_;
      alone_ = alone_ == d ? nullptr : alone_;
      break;
    case held::stage::waiting:
      std::erase(waiting_, d);
      unlink_waiter(d);
      break;
    default:
      return;
  }
  settle_with(now, d, settlement::release, {});
}

// The inbox is asked before anything is condemned: a completed key is accepted, whatever became of its limits.
void consumer_core::admit_key(instant now, held* d, std::uint64_t key_hash) {
  const auto payload = config_.bury == burial::nowhere ? fingerprint{} : fingerprint_of(d->payload);
  const auto known = inbox_.find(d->key, key_hash);
  if (known != inbox::none) {
    if (inbox_.payload_of(known) != payload) {
      return reject(now, d, reason::key_conflict, error_class::none, "the operation key was used with another payload",
                    false);
    }
    if (inbox_.completed(known)) {
      ++counters_.duplicates;
      pin(known, *d);
      return settle_accept(now, d, inbox_.result_of(known));
    }
    // The key's first run decides; this one waits for it, holding its credit.
    auto* first = active_[known];
    d->at = held::stage::waiting;
    d->since = now.boot;
    d->record = known;
    d->next_waiter = first->next_waiter;
    first->next_waiter = d;
    waiting_.push_back(d);
    return;
  }
  if (config_.bury != burial::nowhere) {
    if (d->limit <= now.boot) {
      return reject(now, d, reason::too_old, error_class::none, "", false);
    }
    if (config_.retry.attempts_max && d->attempt > *config_.retry.attempts_max) {
      return reject(now, d, reason::attempts_exhausted, error_class::none, "", false);
    }
    if ((d->flags & delivery_flag::may_have_started) != 0 && !config_.retry.handler_is_idempotent) {
      return reject(now, d, reason::outcome_unknown, error_class::uncertain, "", false);
    }
  }
  if (inbox_.free() == 0) {
    extra e;  // credit never exceeds the free records, but a sender may hand over what another's duplicates have pinned
    e.delay = release_delay();
    return settle_with(now, d, settlement::release, std::move(e));
  }
  d->record = inbox_.claim(d->key, key_hash, payload);
  if (active_.size() <= d->record) {
    active_.resize(std::size_t(d->record) + 1);
  }
  active_[d->record] = d;
  d->at = held::stage::queued;
  suspects_queued_ += needs_word(*d) ? 1 : 0;
  queue_.push_back(d);
}

// The key's first delivery has ended. An accept is theirs too; anything else sends them back, uncounted.
void consumer_core::wake_waiters(instant now, held* first, bool accepted, std::string_view result, duration delay) {
  auto* d = std::exchange(first->next_waiter, nullptr);
  while (d != nullptr) {
    auto* next = std::exchange(d->next_waiter, nullptr);
    std::erase(waiting_, d);
    d->record = inbox::none;
    if (accepted) {
      ++counters_.duplicates;
      pin(first->record, *d);
      settle_accept(now, d, result);
    } else {
      extra e;
      e.delay = delay;
      settle_with(now, d, settlement::release, std::move(e));
    }
    d = next;
  }
}

void consumer_core::unlink_waiter(held* d) {
  for (auto** at = &active_[d->record]->next_waiter; *at != nullptr; at = &(*at)->next_waiter) {
    if (*at == d) {
      *at = d->next_waiter;
      break;
    }
  }
  d->next_waiter = nullptr;
  d->record = inbox::none;
}

void consumer_core::release_stale_waiters(instant now) {
  for (std::size_t i = 0; i < waiting_.size();) {
    auto* d = waiting_[i];
    if (now.boot < after(d->since, d->session->terms.lease)) {
      ++i;
      continue;
    }
    unlink_waiter(d);
    waiting_.erase(waiting_.begin() + std::ptrdiff_t(i));
    extra e;
    e.delay = release_delay();
    settle_with(now, d, settlement::release, std::move(e));
  }
}

held* consumer_core::new_held() {
  if (free_.empty()) {
    pool_.emplace_back();
    free_.push_back(&pool_.back());
  }
  auto* d = free_.back();
  free_.pop_back();
  if (free_.size() >= 4) {
    prefetch(free_[free_.size() - 4], sizeof(held));
  }
  return d;
}

void consumer_core::free_held(held* d) {
  assert(d->next_waiter == nullptr);
  *d = held{};
  free_.push_back(d);
}

}  // namespace onay::core
