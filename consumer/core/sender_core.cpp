// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Sessions, heartbeats, loss of a peer, closing. Settlements are in sender_settle.cpp, handing over in
// sender_deliver.cpp.
#include "core/sender_core.hpp"

#include <algorithm>
#include <cassert>

namespace onay::core {

namespace {

greeting greeting_of(const sender_config& c) {
  greeting g;
  g.logical_id = c.logical_id;
  g.instance = c.instance;
  g.largest_message = c.largest_message;
  g.part = sender_greeting{c.sender_id, c.epoch, 1, c.heartbeat, c.lease};
  return g;
}

}  // namespace

sender_core::sender_core(sender_config config, entropy& ids)
    : config_(std::move(config)), links_(greeting_of(config_), config_.heartbeat, ids), ledger_(config_.hash_seed) {}

sender_core::~sender_core() = default;

std::size_t sender_core::delivered() const { return ledger_.held() - ledger_.ready() - ledger_.parked(); }

std::uint64_t sender_core::free_credit() const {
  std::uint64_t sum = 0;
  for (const auto& [id, s] : sessions_) {
    sum += s->leaving || !links_.ready(id) ? 0 : s->free_credit();
  }
  return sum;
}

std::uint64_t sender_core::free_credit_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [id, s] : sessions_) {
    sum += s->leaving || !links_.ready(id) || s->credit_bytes < s->bytes_sent ? 0 : s->credit_bytes - s->bytes_sent;
  }
  return sum;
}

void sender_core::add_connection(instant now, const route& r) { links_.add_connection(now.boot, r); }

sender_core::submitted sender_core::submit(instant now, std::unique_ptr<stored_message> m,
                                           std::optional<duration> deadline) {
  if (auto* held = ledger_.find_same_key(*m)) {
    if (held->payload() == m->payload()) {
      ++counters_.joined;
      if (!held->joined) {
        held->joined = std::make_unique<std::vector<std::shared_ptr<void>>>();
      }
      held->joined->push_back(std::move(m->receipt));
      return submitted::joined;
    }
    ++counters_.refused;
    finished f;
    f.receipt = std::move(m->receipt);
    f.state = final_state::pending;
    f.why = reason::key_conflict;
    f.size = m->size();
    finished_messages.push_back(std::move(f));
    return submitted::conflict;
  }
  ++counters_.sent;
  m->born = now.boot;
  m->born_utc = now.utc;
  auto longest = config_.age_max;
  if (deadline && (!longest || *deadline < *longest)) {
    longest = deadline;
  }
  m->limit = longest ? after(now.boot, *longest) : never;
  earliest_limit_ = std::min(earliest_limit_, m->limit);
  ledger_.add(std::move(m));
  return submitted::taken;
}

void sender_core::handle_frame(instant now, const route& from, const frame& f) {
  std::visit(
      [&](const auto& command) {
        using command_type = std::decay_t<decltype(command)>;
        if constexpr (std::is_same_v<command_type, hello>) {
          std::get<sender_greeting>(links_.self().part).lowest_held = ledger_.lowest_held();
          links_.handle_hello(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, welcome>) {
          links_.handle_welcome(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, wait>) {
          links_.handle_wait(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, refused>) {
          links_.handle_refused(now.boot, from, command);
        } else if constexpr (std::is_same_v<command_type, error>) {
          handle_session_error(now, from, command);
        } else if constexpr (std::is_same_v<command_type, consumer_heartbeat>) {
          if (auto* s = session_of(from, command.session, frame_type::consumer_heartbeat, false)) {
            handle(now, *s, command);
          }
        } else if constexpr (std::is_same_v<command_type, settle>) {
          if (auto* s = session_of(from, command.session, frame_type::settle, true)) {
            handle(now, *s, command);
          }
        } else if constexpr (std::is_same_v<command_type, bye>) {
          if (auto it = farewells_.find(command.session); it != farewells_.end()) {
            frames.push_back({from, bye_ok{command.session}});
          } else if (auto* s = session_of(from, command.session, frame_type::bye, false)) {
            handle(now, *s, command);
          }
        } else if constexpr (std::is_same_v<command_type, bye_ok>) {
          if (auto* s = session_of(from, command.session, frame_type::bye_ok, false); s != nullptr && s->closing) {
            lose(now, *s);
          }
        } else {
          ++counters_.bad_frames;
          answer_error(from, error_code::out_of_place, command.session, std::uint8_t(f.index() + 1),
                       "a sender doesn't take this command");
        }
      },
      f);
  take_link_events(now);
}

sender_session* sender_core::session_of(const route& from, std::optional<session_id> named, frame_type type,
                                        bool settle) {
  switch (links_.judge(from, named)) {
    case links::standing::current:
      break;
    case links::standing::older_connection:
      // Or a connection that libzmq made anew behind its peer's back: the peer must resume. (To a connection that
      // really is older the answer goes nowhere.)
      answer_error(from, error_code::hello_required, named, std::uint8_t(type), "");
      if (!settle) {  // a settlement counts whichever way it comes
        return nullptr;
      }
      break;
    case links::standing::unknown_session:
      answer_error(from, error_code::unknown_session, named, std::uint8_t(type), "");
      return nullptr;
    case links::standing::hello_required:
      answer_error(from, error_code::hello_required, named, std::uint8_t(type), "");
      return nullptr;
  }
  auto it = sessions_.find(*named);
  return it == sessions_.end() ? nullptr : it->second.get();
}

void sender_core::handle_unreadable(instant, const route& from, std::uint8_t type, std::optional<session_id> session,
                                    std::string text) {
  ++counters_.bad_frames;
  if (type != std::uint8_t(frame_type::error)) {
    answer_error(from, error_code::unreadable, session, type, std::move(text));
  }
}

void sender_core::answer_error(const route& to, error_code code, std::optional<session_id> session, std::uint8_t about,
                               std::string text) {
  frames.push_back({to, error{code, session, about, false, std::move(text)}});
}

void sender_core::handle_session_error(instant now, const route& from, const error& e) {
  links_.handle_error(now.boot, from, e);
  const auto current = links_.session_on(from);
  if (!e.closed || !e.session || *e.session != current || current == 0) {
    return;
  }
  auto& s = *sessions_.at(current);
  if (e.code == error_code::unreadable_deliver) {
    // One of these can't be carried; alone in a frame it can't take its neighbours with it.
    for (auto tag : s.unnamed) {
      if (auto* t = s.tags.find(tag); t != nullptr && t->message != nullptr) {
        t->message->alone_in_frame = true;
      }
    }
  }
  lose(now, s);
}

void sender_core::handle(instant now, sender_session& s, const consumer_heartbeat& h) {
  const auto heard = s.beat.handle_heartbeat(now.boot, h.number, h.echo, h.answer_now);
  if (!heard.fresh) {
    return;
  }
  if (s.probe_mark != 0 && h.echo >= s.probe_mark) {
    s.probe_mark = 0;
    links_.handle_alive(s.id);
  }
  s.credit_tag = h.credit_tag;
  s.credit_bytes = h.credit_bytes;
  for (const auto& r : h.running.list()) {
    s.tags.for_each_in(r.first, r.last, [](std::uint64_t, slot& t) { t.started = true; });
  }
  if (!h.asked.empty()) {
    confirm_starts(now, s, h.asked, nullptr);
    s.beat.send_soon();  // our heartbeat carries every confirmation
  }
  find_missing(s, h.echo, h);
  if (s.unnamed.empty() && !(ledger_.ready() > 0 && s.free_credit() == 0)) {
    s.beat.stop_expecting();
  } else if (heard.progress) {
    s.beat.stop_expecting();
    s.beat.keep_expecting(now.boot);
  }
}

void sender_core::handle(instant now, sender_session& s, const bye& b) {
  ranges ignored;
  apply_ranges(now, s, b.accepted, ignored);
  for (const auto& item : b.others) {
    (void)apply(now, s, item);
  }
  // What never started goes back uncounted; a handler that still runs keeps its message here until the lease ends.
  std::vector<std::uint64_t> never_started;
  s.tags.for_each([&](std::uint64_t tag, slot& t) {
    if (b.running.contains(tag)) {
      t.started = true;
    } else {
      never_started.push_back(tag);
    }
  });
  for (auto tag : never_started) {
    const auto t = *s.tags.find(tag);
    close_tag(s, tag, t);
    if (t.message != nullptr) {
      give_back(now, t.message, duration::zero());
    }
  }
  frames.push_back({s.to, bye_ok{s.id}});
  s.leaving = true;
  if (s.tags.empty()) {
    lose(now, s);
  }
}

void sender_core::handle_unsendable(instant now, const route& r) {
  links_.handle_unsendable(now.boot, r);
  take_link_events(now);
}

void sender_core::handle_writable(instant now, const route& r) { links_.handle_writable(now.boot, r); }

void sender_core::handle_time(instant now) {
  // Time in which this end didn't run (a stopped process, a busy machine) says nothing about the peers.
  if (last_step_ != never && now.boot > last_step_ + config_.heartbeat) {
    for (auto& [id, s] : sessions_) {
      s->beat.forgive(now.boot - last_step_ - config_.heartbeat);
    }
  }
  last_step_ = now.boot;
  ledger_.handle_time(now.boot);
  std::vector<sender_session*> lost;
  for (auto& [id, s] : sessions_) {
    if (now.boot >= s->beat.lease_end()) {
      lost.push_back(s.get());
    }
  }
  for (auto* s : lost) {
    lose(now, *s);
  }
  std::erase_if(farewells_, [&](const auto& f) { return f.second <= now.boot; });
  links_.handle_time(now.boot);
  take_link_events(now);
}

void sender_core::take_link_events(instant now) {
  // A loss may add events, so walk by index.
  for (std::size_t i = 0; i < links_.events.size(); ++i) {
    const auto e = links_.events[i];
    switch (e.what) {
      case link_event::kind::opened: {
        if (sessions_.empty()) {
          last_step_ = now.boot;  // sleeping while there was nobody is not being held up
        }
        auto s = std::make_unique<sender_session>(e.session, e.to, e.peer, config_, now.boot);
        sessions_.emplace(e.session, std::move(s));
        refused_by_peer_.clear();
        take_back_aside();
        break;
      }
      case link_event::kind::moved:
        sessions_.at(e.session)->to = e.to;
        sessions_.at(e.session)->beat.send_soon();
        break;
      case link_event::kind::ended:
        if (auto it = sessions_.find(e.session); it != sessions_.end()) {
          auto s = std::move(it->second);
          sessions_.erase(it);
          std::vector<std::uint64_t> open;
          s->tags.for_each([&](std::uint64_t tag, slot&) { open.push_back(tag); });
          for (auto tag : open) {
            auto t = *s->tags.find(tag);
            close_tag(*s, tag, t);
            lose_delivery(now, *s, t);
          }
          if (s->leaving) {
            farewells_[s->id] = after(now.boot, config_.lease);
          }
          counters_.peers_lost += s->closing || (s->leaving && open.empty()) ? 0 : 1;
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

void sender_core::lose(instant now, sender_session& s) {
  const auto id = s.id;
  links_.end(now.boot, id, !closing_);
  links_.events.push_back({link_event::kind::ended, id, {}, {}, {}, {}});
  take_link_events(now);
}

// What a lost peer held moves on; whether an attempt is charged depends on whether it had started there.
void sender_core::lose_delivery(instant now, sender_session& s, slot& t) {
  auto* m = t.message;
  if (m == nullptr) {
    return;
  }
  if (!m->condemned) {
    const bool ran = t.started || t.confirmed;
    const auto limit = s.limits.attempts_max;
    const bool last = limit && m->attempts + 1 >= *limit;
    const bool charged = ran && (!last || t.alone);
    if (charged) {
      ledger::note_attempt(*m, now.utc);
      m->last_error = error_class::uncertain;
      m->error_text = std::make_unique<std::string>("the worker was lost while the handler ran");
    }
    if (t.confirmed) {
      lost_starts_[m->number] = {s.peer.instance, charged};
      m->may_have_started = m->may_have_started || s.limits.confirms_all_starts;
    }
    m->suspect = true;
  }
  ledger_.make_ready(m);
}

void sender_core::begin_close(instant now) {
  closing_ = true;
  links_.close();
  std::vector<sender_session*> gone;
  for (auto& [id, s] : sessions_) {
    s->closing = true;
    if (links_.ready(id)) {
      frames.push_back({s->to, bye{id, s->highest_tag, {}, {}, {}}});
    } else {
      gone.push_back(s.get());
    }
  }
  for (auto* s : gone) {
    lose(now, *s);
  }
}

void sender_core::abandon_all(instant now) {
  std::vector<stored_message*> open;
  ledger_.for_each([&](stored_message& m) {
    if (m.where != stored_message::place::settled) {
      open.push_back(&m);
    }
  });
  for (auto* m : open) {
    finished f;
    f.state = final_state::unknown;
    f.record = std::make_unique<retry_record>(ledger_.record_of(*m, now, final_state::unknown));
    f.receipt = std::move(m->receipt);
    f.joined = std::move(m->joined);
    f.size = m->size();
    finished_messages.push_back(std::move(f));
  }
}

time_point sender_core::next_deadline() const {
  auto next = std::min(links_.next_deadline(), ledger_.next_due());
  if (!closing_ && ledger_.held() > 0 && !anyone_buries()) {
    next = std::min(next, std::max(earliest_limit_, next_limit_scan_));
  }
  if (!sessions_.empty() && last_step_ != never) {
    next = std::min(next, after(last_step_, config_.heartbeat));  // a longer sleep would count as being held up
  }
  for (const auto& [id, s] : sessions_) {
    next = std::min({next, s->beat.lease_end(), links_.ready(id) ? s->beat.next_deadline() : never});
  }
  return next;
}

}  // namespace onay::core
