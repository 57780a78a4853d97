// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "core/links.hpp"

#include <algorithm>
#include <utility>

namespace onay::core {

namespace {

// A peer's word on how long to wait is kept within reason.
constexpr duration wait_longest = std::chrono::seconds(60);

// A sender's terms are timers of ours: too small ones would spin, too large ones never end.
bool sound(const greeting& g) {
  const auto* s = std::get_if<sender_greeting>(&g.part);
  return s == nullptr || (s->heartbeat >= std::chrono::milliseconds(1) && s->lease <= std::chrono::hours(24) &&
                          s->heartbeat <= s->lease / 4);
}

}  // namespace

links::links(greeting self, duration hello_interval, entropy& ids)
    : self_(std::move(self)), hello_interval_(hello_interval), ids_(ids) {}

session_id links::session_on(const route& r) const {
  auto it = by_route_.find(r);
  return it == by_route_.end() ? 0 : it->second;
}

links::standing links::judge(const route& r, std::optional<session_id> session) const {
  const auto current = session_on(r);
  if (session && *session == current && current != 0) {
    return standing::current;
  }
  if (session && by_session_.contains(*session)) {
    return standing::older_connection;
  }
  return current == 0 ? standing::hello_required : standing::unknown_session;
}

bool links::ready(session_id session) const {
  auto it = by_session_.find(session);
  if (it == by_session_.end()) {
    return false;
  }
  if (!it->second.dialed) {
    return it->second.routable;
  }
  auto d = dialing_.find(it->second.to);
  return d != dialing_.end() && d->second.state == dial_state::up;
}

bool links::hopeful() const {
  if (!by_session_.empty()) {
    return true;
  }
  return dialing_.empty() || std::any_of(dialing_.begin(), dialing_.end(), [](const auto& entry) {
           return entry.second.state != dial_state::refused || entry.second.next != never;
         });
}

void links::add_connection(time_point now, const route& r) {
  auto& d = dialing_[r];
  d.connection = ids_.next() >> 32U;  // rises from here; a start at random tells two lives of a socket apart in logs
  d.next = now;
}

void links::handle_hello(time_point now, const route& from, const hello& h) {
  if (dialing_.contains(from)) {
    return;  // both ends connect to each other: the connecting end never answers a HELLO
  }
  if (closed_ && !continues(h)) {
    return refuse(from, h, refusal::closing, "this end is closing");
  }
  if (h.version_min > protocol_version || h.version_max < protocol_version) {
    return refuse(from, h, refusal::unsupported_version, "this end speaks version 1");
  }
  if (h.self.role() == self_.role()) {
    return refuse(from, h, refusal::wrong_role,
                  self_.role() == role::sender ? "this end is a sender too" : "this end is a consumer too");
  }
  if (!sound(h.self)) {
    return refuse(from, h, refusal::bad_options,
                  "the heartbeat must be at least 1 ms and at most a quarter of the lease, the lease at most 24 h");
  }

  auto named = by_name_.find(h.self.logical_id);
  if (named == by_name_.end()) {
    return open_accepted(now, from, h);
  }
  const session_id known = named->second;
  auto& link = by_session_.at(known);

  if (link.instance == h.self.instance) {
    if (h.connection < link.connection) {
      return;
    }
    const bool resumes = h.resume && *h.resume == known;
    if (h.connection == link.connection) {
      if (link.to != from || !link.routable) {  // the same HELLO, repeated over a connection that was made anew
        move(from, known, link);
      }
      frames.push_back({from, link.answer});
    } else if (resumes) {
      link.connection = h.connection;
      link.answer.connection = h.connection;
      link.answer.resumed = true;
      link.answer.self = self_;
      move(from, known, link);
      frames.push_back({from, link.answer});
    } else {
      drop(known);
      open_accepted(now, from, h);
    }
    return;
  }

  // Another life under a name that is taken.
  if (!link.routable) {
    drop(known);
    return open_accepted(now, from, h);
  }
  const duration silence = 2 * link.heartbeat;
  if (!link.rival || link.rival->greeting.self.instance != h.self.instance) {
    link.rival = {from, h, now + silence};
    events.push_back({link_event::kind::probe, known, link.to, {}, now, {}});
  }
  link.rival->from = from;
  link.rival->greeting = h;
  frames.push_back(
      {from, wait{h.connection, silence, "the logical id is in use; waiting for its holder's sign of life"}});
}

// The name's holder is gone: the newcomer gets its place.
void links::replace(time_point now, session_id session) {
  const auto rival = *by_session_.at(session).rival;
  drop(session);
  open_accepted(now, rival.from, rival.greeting);
}

void links::open_accepted(time_point now, const route& from, const hello& h) {
  // A connection carries one session: a second name on it takes the first one's place, so that sessions are bounded by
  // connections.
  if (auto it = by_route_.find(from); it != by_route_.end()) {
    drop(it->second);
  }
  session_id id = 0;
  while (id == 0 || by_session_.contains(id)) {
    id = ids_.next();
  }
  open_link link;
  link.to = from;
  link.logical_id = h.self.logical_id;
  link.instance = h.self.instance;
  link.connection = h.connection;
  link.heartbeat = heartbeat_with(h.self);
  link.answer = welcome{id, protocol_version, self_, h.connection, false};
  frames.push_back({from, link.answer});
  events.push_back({link_event::kind::opened, id, from, h.self, now, {}});
  by_route_[from] = id;
  by_name_[h.self.logical_id] = id;
  by_session_.emplace(id, std::move(link));
}

void links::move(const route& from, session_id session, open_link& link) {
  if (auto it = by_route_.find(link.to); it != by_route_.end() && it->second == session) {
    by_route_.erase(it);
  }
  if (auto it = by_route_.find(from); it != by_route_.end() && it->second != session) {
    drop(it->second);
  }
  link.to = from;
  link.routable = true;
  by_route_[from] = session;
  events.push_back({link_event::kind::moved, session, from, {}, {}, {}});
}

void links::refuse(const route& from, const hello& h, refusal why, std::string text) {
  frames.push_back({from, refused{h.connection, why, duration::zero(), std::move(text)}});
}

void links::handle_welcome(time_point, const route& from, const welcome& w) {
  auto it = dialing_.find(from);
  if (it == dialing_.end() || it->second.state == dial_state::up || it->second.connection != w.connection ||
      w.session == 0) {
    return;  // an answer to an older HELLO, or a second copy
  }
  auto& d = it->second;
  if (w.self.role() == self_.role() || w.version != protocol_version || !sound(w.self)) {
    d.state = dial_state::refused;
    d.next = never;
    events.push_back(
        {link_event::kind::refused, 0, from, {}, {}, "the peer has the wrong role or version, or terms out of range"});
    return;
  }
  d.state = dial_state::up;
  d.next = never;
  if (w.resumed && d.session == w.session && by_session_.contains(w.session)) {
    auto& link = by_session_.at(w.session);
    link.routable = true;
    by_route_[from] = w.session;
    events.push_back({link_event::kind::moved, w.session, from, {}, {}, {}});
    return;
  }
  if (d.session != 0 && by_session_.contains(d.session)) {
    drop(d.session);
  }
  if (by_session_.contains(w.session)) {
    return;  // 64 random bits met twice, or a peer that lies
  }
  d.session = w.session;
  open_link link;
  link.to = from;
  link.logical_id = w.self.logical_id;
  link.instance = w.self.instance;
  link.dialed = true;
  link.heartbeat = heartbeat_with(w.self);
  by_session_.emplace(w.session, std::move(link));
  by_route_[from] = w.session;
  events.push_back({link_event::kind::opened, w.session, from, w.self, d.first_sent, {}});
}

void links::handle_wait(time_point now, const route& from, const wait& w) {
  auto it = dialing_.find(from);
  if (it == dialing_.end() || it->second.state != dial_state::unanswered || it->second.connection != w.connection) {
    return;
  }
  it->second.state = dial_state::waiting;
  it->second.next = now + std::clamp(w.how_long, duration::zero(), wait_longest);
}

void links::handle_refused(time_point now, const route& from, const refused& r) {
  auto it = dialing_.find(from);
  if (it == dialing_.end() || it->second.state == dial_state::up || it->second.connection != r.connection) {
    return;
  }
  auto& d = it->second;
  d.state = dial_state::refused;
  // A peer that is closing goes away; whoever comes next at that address may want us.
  const auto how_long = r.why == refusal::closing ? std::max<duration>(r.how_long, hello_interval_) : r.how_long;
  d.next = how_long > duration::zero() ? now + std::min(how_long, wait_longest) : never;
  if (r.why != refusal::closing) {
    events.push_back({link_event::kind::refused, 0, from, {}, {}, r.text});
  }
}

void links::handle_error(time_point now, const route& from, const error& e) {
  if (e.code != error_code::hello_required && e.code != error_code::unknown_session) {
    return;
  }
  auto it = dialing_.find(from);
  if (it == dialing_.end() || it->second.state != dial_state::up || !e.session || *e.session != it->second.session) {
    return;
  }
  // The socket reconnected behind our back, or the peer is a new life: greet, and offer to go on.
  auto& d = it->second;
  d.state = dial_state::unsent;
  d.resume = d.session;
  d.next = now;
}

void links::handle_alive(session_id session) {
  auto it = by_session_.find(session);
  if (it == by_session_.end() || !it->second.rival) {
    return;
  }
  const auto rival = *std::exchange(it->second.rival, std::nullopt);
  refuse(rival.from, rival.greeting, refusal::identity_in_use,
         "identity in use: another live instance has the logical id");
}

void links::handle_unsendable(time_point now, const route& r) {
  if (auto it = dialing_.find(r); it != dialing_.end()) {
    auto& d = it->second;
    if (d.state == dial_state::refused) {
      return;
    }
    if (d.state == dial_state::up) {
      d.resume = d.session;
    }
    d.state = dial_state::unsent;
    d.next = never;  // until the shell says that the socket is writable
    return;
  }
  if (auto it = by_route_.find(r); it != by_route_.end()) {
    const auto session = it->second;
    auto& link = by_session_.at(session);
    link.routable = false;
    by_route_.erase(it);
    if (link.rival) {
      replace(now, session);
    }
  }
}

void links::handle_writable(time_point now, const route& r) {
  if (auto it = dialing_.find(r); it != dialing_.end() && it->second.state == dial_state::unsent) {
    it->second.next = std::min(it->second.next, now);
  }
}

void links::handle_time(time_point now) {
  for (auto& [to, d] : dialing_) {
    if (d.state != dial_state::up && now >= d.next && may_greet(d)) {
      say_hello(now, to, d);
    }
  }
  std::vector<session_id> silent;
  for (auto& [id, link] : by_session_) {
    if (link.rival && now >= link.rival->decided_at) {
      silent.push_back(id);
    }
  }
  for (auto id : silent) {
    // Replacing one may have ended another: a connection carries one session.
    if (auto it = by_session_.find(id); it != by_session_.end() && it->second.rival) {
      replace(now, id);
    }
  }
}

void links::say_hello(time_point now, const route& to, dialing& d) {
  // Unchanged until answered. A fresh number after a WAIT, and when two copies went unanswered: the lease that a
  // session starts with is counted from the first copy of its HELLO.
  if (d.state != dial_state::unanswered || d.tries >= 2) {
    ++d.connection;
    d.tries = 0;
    d.first_sent = now;
  }
  d.state = dial_state::unanswered;
  ++d.tries;
  d.next = now + hello_interval_;
  frames.push_back({to, hello{protocol_version, protocol_version, self_, d.connection, d.resume}});
}

void links::end(time_point now, session_id session, bool again) {
  auto it = by_session_.find(session);
  if (it == by_session_.end()) {
    return;
  }
  if (it->second.dialed) {
    for (auto& [to, d] : dialing_) {
      if (d.session == session) {
        d.session = 0;
        d.resume.reset();
        d.state = dial_state::unsent;
        d.next = again ? now : never;
      }
    }
  }
  drop(session);
  events.pop_back();  // the core asked for it: no news
}

void links::drop(session_id session) {
  auto it = by_session_.find(session);
  if (auto r = by_route_.find(it->second.to); r != by_route_.end() && r->second == session) {
    by_route_.erase(r);
  }
  if (auto n = by_name_.find(it->second.logical_id); n != by_name_.end() && n->second == session) {
    by_name_.erase(n);
  }
  by_session_.erase(it);
  events.push_back({link_event::kind::ended, session, {}, {}, {}, {}});
}

void links::close() { closed_ = true; }

// An end that is closing begins nothing, but goes on with what there is: settlements may still be on their way.
bool links::may_greet(const dialing& d) const { return !closed_ || (d.resume && by_session_.contains(*d.resume)); }

bool links::continues(const hello& h) const {
  auto named = by_name_.find(h.self.logical_id);
  if (named == by_name_.end()) {
    return false;
  }
  const auto& link = by_session_.at(named->second);
  return link.instance == h.self.instance && (h.connection == link.connection || h.resume == named->second);
}

duration links::heartbeat_with(const greeting& peer) const {
  const auto* mine = std::get_if<sender_greeting>(&self_.part);
  const auto* theirs = std::get_if<sender_greeting>(&peer.part);
  return mine != nullptr ? mine->heartbeat : theirs != nullptr ? theirs->heartbeat : hello_interval_;
}

time_point links::next_deadline() const {
  auto next = never;
  for (const auto& [to, d] : dialing_) {
    if (d.state != dial_state::up && may_greet(d)) {
      next = std::min(next, d.next);
    }
  }
  for (const auto& [id, link] : by_session_) {
    if (link.rival) {
      next = std::min(next, link.rival->decided_at);
    }
  }
  return next;
}

std::vector<route> links::wants_writable() const {
  std::vector<route> result;
  for (const auto& [to, d] : dialing_) {
    if (d.state == dial_state::unsent && d.next == never) {
      result.push_back(to);
    }
  }
  return result;
}

}  // namespace onay::core
