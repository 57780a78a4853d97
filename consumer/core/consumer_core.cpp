// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Sessions and heartbeats. Deliveries are in consumer_admit.cpp, runs in consumer_run.cpp, settlements in
// consumer_settle.cpp, credit and what goes out in consumer_credit.cpp, leaving in consumer_drain.cpp.
#include "core/consumer_core.hpp"

#include <algorithm>
#include <cassert>

namespace onay::core {

namespace {

greeting greeting_of(const consumer_config& c) {
  greeting g;
  g.logical_id = c.logical_id;
  g.instance = c.instance;
  g.largest_message = c.largest_message;
  g.byte_window = c.credit_bytes_max;
  consumer_greeting part;
  part.attempts_max = c.retry.attempts_max;
  part.confirms_all_starts = !c.retry.handler_is_idempotent;
  part.can_bury = c.bury != burial::nowhere;
  part.largest_dead_letter = c.largest_message;
  g.part = part;
  return g;
}

}  // namespace

consumer_core::consumer_core(consumer_config config, entropy& ids, std::function<double()> draw)
    : config_(std::move(config)),
      draw_(std::move(draw)),
      links_(greeting_of(config_), config_.hello_interval, ids),
      inbox_(config_.inbox_max, config_.hash_seed) {}

consumer_core::~consumer_core() = default;

void consumer_core::add_connection(instant now, const route& r) { links_.add_connection(now.boot, r); }

void consumer_core::handle_frame(instant now, const route& from, const frame& f,
                                 const std::shared_ptr<const void>& buffer) {
  std::visit(
      [&](const auto& command) {
        using command_type = std::decay_t<decltype(command)>;
        if constexpr (std::is_same_v<command_type, hello>) {
          links_.handle_hello(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, welcome>) {
          links_.handle_welcome(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, wait>) {
          links_.handle_wait(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, refused>) {
          links_.handle_refused(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, error>) {
          links_.handle_error(now.boot, from, command);
          if (const auto current = links_.session_on(from);
              command.closed && current != 0 && command.session == current) {
            end_session(now, *sessions_.at(current), true);
          }
        } else if constexpr (std::is_same_v<command_type, deliver>) {
          if (auto* s = session_of(from, command.session, frame_type::deliver)) {
            handle(now, *s, command, buffer);
          }
        } else if constexpr (std::is_same_v<command_type, sender_heartbeat>) {
          if (auto* s = session_of(from, command.session, frame_type::sender_heartbeat)) {
            handle(now, *s, command);
          }
        } else if constexpr (std::is_same_v<command_type, settled>) {
          if (auto* s = session_of(from, command.session, frame_type::settled)) {
            handle(now, *s, command);
          }
        } else if constexpr (std::is_same_v<command_type, bye>) {
          if (auto* s = session_of(from, command.session, frame_type::bye)) {
            frames.push_back({from, bye_ok{command.session}});
            end_session(now, *s, true);
          }
        } else if constexpr (std::is_same_v<command_type, bye_ok>) {
          if (auto* s = session_of(from, command.session, frame_type::bye_ok); s != nullptr && s->parting) {
            end_session(now, *s, false);
          }
        } else {
          ++counters_.bad_frames;
          answer_error(from, error_code::out_of_place, command.session, std::uint8_t(f.index() + 1), false,
                       "a consumer doesn't take this command");
        }
      },
      f);
  take_link_events(now);
}

consumer_session* consumer_core::session_of(const route& from, std::optional<session_id> named, frame_type type) {
  switch (links_.judge(from, named)) {
    case links::standing::current:
      break;
    case links::standing::older_connection:
      // Or a connection that libzmq made anew behind its peer's back: the peer must resume. (To a connection that
      // really is older the answer goes nowhere.)
      answer_error(from, error_code::hello_required, named, std::uint8_t(type), false, "");
      return nullptr;
    case links::standing::unknown_session:
      answer_error(from, error_code::unknown_session, named, std::uint8_t(type), false, "");
      return nullptr;
    case links::standing::hello_required:
      answer_error(from, error_code::hello_required, named, std::uint8_t(type), false, "");
      return nullptr;
  }
  auto it = sessions_.find(*named);
  return it == sessions_.end() ? nullptr : it->second.get();
}

void consumer_core::handle_unreadable(instant now, const route& from, std::uint8_t type,
                                      std::optional<session_id> session, std::string text) {
  ++counters_.bad_frames;
  const auto current = links_.session_on(from);
  if (type == std::uint8_t(frame_type::deliver) && session && *session == current && current != 0) {
    // Tags that can't be read would stay open for ever; a new session starts clean.
    close_session(now, *sessions_.at(current), error_code::unreadable_deliver, type, std::move(text));
  } else if (type != std::uint8_t(frame_type::error)) {
    answer_error(from, error_code::unreadable, session, type, false, std::move(text));
  }
  take_link_events(now);
}

void consumer_core::answer_error(const route& to, error_code code, std::optional<session_id> session,
                                 std::uint8_t about, bool closed, std::string text) {
  frames.push_back({to, error{code, session, about, closed, std::move(text)}});
}

void consumer_core::close_session(instant now, consumer_session& s, error_code code, std::uint8_t about,
                                  std::string text) {
  answer_error(s.to, code, s.id, about, true, std::move(text));
  end_session(now, s, true);
}

void consumer_core::handle(instant now, consumer_session& s, const sender_heartbeat& h) {
  const auto heard = s.beat.handle_heartbeat(now.boot, h.number, h.echo, h.answer_now);
  if (!heard.fresh) {
    return;
  }
  if (s.probe_mark != 0 && h.echo >= s.probe_mark) {
    s.probe_mark = 0;
    links_.handle_alive(s.id);
  }
  s.startable_until.store(s.beat.lease_end().time_since_epoch().count(), std::memory_order_relaxed);
  s.backlog = h.backlog_messages;
  s.next_size = std::min(h.next_size, config_.largest_message);  // a larger one isn't sent here
  if (h.highest_tag > s.highest_seen && h.highest_tag <= s.counted_tag) {
    // Sent before this heartbeat and not here: lost, or about to be overtaken. Not naming it gets it sent again.
    s.missing.insert({s.highest_seen + 1, h.highest_tag});
    s.highest_seen = h.highest_tag;
  }
  if (s.lowered_by != 0 && h.echo >= s.lowered_by) {
    // What it had sent before it read that stays counted.
    s.credit_tag = s.counted_tag = std::max({s.credit_tag, s.highest_seen, std::min(h.highest_tag, s.counted_tag)});
    s.credit_bytes = s.counted_bytes =
        std::max({s.credit_bytes, s.bytes_seen, std::min(h.bytes_sent, s.counted_bytes)});
    s.lowered_by = 0;
  }
  inbox_.confirm_below(s.terms.sender_id, h.epoch, h.lowest_held);
  confirm_starts(s, h.confirmed);
  if (heard.progress) {
    repeat_unconfirmed(now, s);
  }
}

void consumer_core::handle_unsendable(instant now, const route& r) {
  links_.handle_unsendable(now.boot, r);
  take_link_events(now);
}

void consumer_core::handle_writable(instant now, const route& r) { links_.handle_writable(now.boot, r); }

void consumer_core::handle_time(instant now) {
  std::vector<consumer_session*> over;
  for (auto& [id, s] : sessions_) {
    if (now.boot >= s->beat.lease_end()) {
      over.push_back(s.get());
    }
  }
  for (auto* s : over) {
    end_session(now, *s, true);
  }
  handle_timeouts(now);
  release_stale_waiters(now);
  std::erase_if(away_, [&](const away& a) {
    if (now.boot < after(a.since, pin_age())) {
      return false;
    }
    counters_.pins_dropped += inbox_.forget_sender(a.sender_id);
    homeless_late_.erase(a.sender_id);
    return true;
  });
  links_.handle_time(now.boot);
  take_link_events(now);
}

void consumer_core::take_link_events(instant now) {
  for (std::size_t i = 0; i < links_.events.size(); ++i) {
    const auto e = links_.events[i];
    switch (e.what) {
      case link_event::kind::opened:
        open(e);
        break;
      case link_event::kind::moved:
        if (auto it = sessions_.find(e.session); it != sessions_.end()) {
          it->second->to = e.to;
          it->second->beat.send_soon();
        }
        break;
      case link_event::kind::ended:
        if (auto it = sessions_.find(e.session); it != sessions_.end()) {
          forget_session(now, *it->second);
        }
        break;
      case link_event::kind::probe:
        if (auto it = sessions_.find(e.session); it != sessions_.end()) {
          it->second->probe_mark = it->second->beat.mark();
          it->second->beat.send_soon();
          it->second->beat.expect_answer(now.boot);
        }
        break;
      case link_event::kind::refused:
        refused_by_peer_ = e.text;
        break;
    }
  }
  links_.events.clear();
  std::move(links_.frames.begin(), links_.frames.end(), std::back_inserter(frames));
  links_.frames.clear();
}

void consumer_core::open(const link_event& e) {
  auto owned = std::make_unique<consumer_session>(e.session, e.to, e.peer, e.since);
  auto& s = *owned;
  const auto& terms = s.terms;
  sessions_.emplace(e.session, std::move(owned));
  s.startable_until.store(s.beat.lease_end().time_since_epoch().count(), std::memory_order_relaxed);
  links_.set_hello_interval(std::min<duration>(terms.heartbeat, config_.hello_interval));
  refused_by_peer_.clear();
  std::erase_if(away_, [&](const away& a) { return a.sender_id == terms.sender_id; });
  inbox_.confirm_below(terms.sender_id, terms.epoch, terms.lowest_held);
  // What this sender has not confirmed is told again, by message id.
  inbox_.for_each_pin(terms.sender_id, [&](std::uint64_t epoch, std::uint64_t number, std::string_view result) {
    add_late(s, {epoch, number, settlement::accept, true, {}}, result);
  });
  if (auto it = homeless_late_.find(terms.sender_id); it != homeless_late_.end()) {
    for (auto& l : it->second) {
      add_late(s, l.item, l.result);
    }
    homeless_late_.erase(it);
  }
}

// This end gives the session up. `again`: a connecting end greets anew.
void consumer_core::end_session(instant now, consumer_session& s, bool again) {
  links_.end(now.boot, s.id, again && drain_ == drain_state::none);
  forget_session(now, s);
}

// Queued deliveries are dropped: the sender hands them over again. What runs goes on with its stop token fired, and
// will settle by message id.
void consumer_core::forget_session(instant now, consumer_session& s) {
  counters_.lost_leases += s.parting ? 0 : 1;
  s.ended = true;
  s.startable_until.store(0, std::memory_order_relaxed);
  std::vector<held*> open;
  s.tags.for_each([&](std::uint64_t, slot& t) {
    if (t.delivery != nullptr) {
      open.push_back(t.delivery);
    }
  });
  std::erase_if(queue_, [&](held* d) {
    if (d->session != &s) {
      return false;
    }
    suspects_queued_ -= needs_word(*d) ? 1 : 0;
    return true;
  });
  std::erase_if(waiting_, [&](held* d) { return d->session == &s; });
  // Those that wait for another delivery first: ending that one must not find them.
  std::erase_if(open, [&](held* d) {
    d->session = nullptr;
    if (d->at != held::stage::waiting) {
      return false;
    }
    unlink_waiter(d);
    free_held(d);
    return true;
  });
  for (auto* d : open) {
    switch (d->at) {
      case held::stage::asking:
        --asking_;
        alone_ = alone_ == d ? nullptr : alone_;
        [[fallthrough]];
      case held::stage::queued:
        never_started(now, d);
        break;
      case held::stage::dispatched:
      case held::stage::running:
        if (!d->stop_fired) {
          d->stop_fired = true;
          stops.push_back(d);
        }
        break;
      case held::stage::rejecting:
        free_held(d);
        break;
      case held::stage::waiting:
      case held::stage::burying:  // under way: its end is told by message id
      case held::stage::abandoned:
      case held::stage::free:
        break;
    }
  }
  for (auto& l : s.late) {
    if (l.item.kind != settlement::accept) {  // accepts are pins
      homeless_late_[s.terms.sender_id].push_back(std::move(l));
    }
  }
  // A buried settlement that was not confirmed must reach the sender, or it would be buried again.
  s.tags.for_each([&](std::uint64_t, slot& t) {
    if (t.settled && t.kind == settlement::buried) {
      homeless_late_[s.terms.sender_id].push_back({{s.terms.epoch, t.number, settlement::buried, false, {}}, {}, 0});
    }
  });
  if (inbox_.pins_of(s.terms.sender_id) > 0 || homeless_late_.contains(s.terms.sender_id)) {
    note_away(now, s.terms.sender_id);
  }
  auto it = sessions_.find(s.id);
  ended_sessions_.push_back(std::move(it->second));
  sessions_.erase(it);
  drop_session_if_unused(s);
}

void consumer_core::drop_session_if_unused(consumer_session& s) {
  if (s.ended && s.dispatched == 0) {
    std::erase_if(ended_sessions_, [&](const auto& owned) { return owned.get() == &s; });
  }
}

// A sender without a session keeps its pins and its late settlements this long.
void consumer_core::note_away(instant now, std::uint64_t sender_id) {
  if (std::none_of(away_.begin(), away_.end(), [&](const away& a) { return a.sender_id == sender_id; })) {
    away_.push_back({sender_id, now.boot});
  }
}

duration consumer_core::pin_age() const { return config_.age_max.value_or(std::chrono::hours(24)); }

consumer_session* consumer_core::session_with(std::uint64_t sender_id) {
  for (auto& [id, s] : sessions_) {
    if (s->terms.sender_id == sender_id && !s->parting) {
      return s.get();
    }
  }
  return nullptr;
}

consumer_core::snapshot consumer_core::look() {
  snapshot v;
  for (auto& [id, s] : sessions_) {
    s->tags.for_each([&](std::uint64_t, slot& t) {
      if (t.settled) {
        ++v.unconfirmed;
      } else {
        ++v.held;
        v.held_bytes += t.size;
      }
    });
    v.late += s->late.size();
    v.backlog += s->backlog;
  }
  v.sessions = sessions_.size();
  v.queued = queue_.size();
  v.dispatched = dispatched_;
  v.running = running_.size();
  v.asking = asking_;
  v.waiting = waiting_.size();
  v.burying = burying_;
  for (const auto* d : running_) {
    v.stuck += d->timed_out ? 1 : 0;
  }
  return v;
}

}  // namespace onay::core
