// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Which peer is on which connection, in which session: HELLO, WELCOME, WAIT, REFUSED, resuming, identities. The same
// for both roles; the cores above see sessions that open, move to another connection, and end.
//
// The connecting end speaks first and repeats its HELLO until it is answered; the binding end makes the sessions. A
// logical id belongs to one live instance: a newcomer under a known name waits until the old one has proved that it
// lives (then the newcomer is refused) or kept silent for two heartbeats (then the old one is replaced).
#pragma once

#include "core/frames.hpp"
#include "core/instant.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace onay::core {

struct link_event {
  enum class kind {
    opened,   // a new session; `peer`, `to`, `since`
    moved,    // the session goes on over `to`
    ended,    // the peer gave it up, was replaced, or is a new life
    probe,    // ask this session's peer for a sign of life, now; report it with `handle_alive`
    refused,  // a peer doesn't want us; `text`
  };
  kind what = kind::opened;
  session_id session = 0;
  route to;
  greeting peer;
  time_point since{};  // no later than what the peer can count its end of the lease from
  std::string text;
};

class links {
 public:
  // `hello_interval`: how often an unanswered HELLO is repeated.
  links(greeting self, duration hello_interval, entropy& ids);

  // --- getters ---
  // The session that lives on this connection, or 0.
  [[nodiscard]] session_id session_on(const route& r) const;
  // What to answer a frame that names `session` (nothing: it names none) and arrived from `r`.
  enum class standing { current, older_connection, unknown_session, hello_required };
  [[nodiscard]] standing judge(const route& r, std::optional<session_id> session) const;
  [[nodiscard]] bool any_open() const { return !by_session_.empty(); }
  // What is sent on this session's connection now can arrive.
  [[nodiscard]] bool ready(session_id session) const;
  // Some connection is still trying, or might be answered later.
  [[nodiscard]] bool hopeful() const;

  // --- inputs ---
  void add_connection(time_point now, const route& r);  // of a connecting socket
  void handle_hello(time_point now, const route& from, const hello& h);
  void handle_welcome(time_point now, const route& from, const welcome& w);
  void handle_wait(time_point now, const route& from, const wait& w);
  void handle_refused(time_point now, const route& from, const refused& r);
  void handle_error(time_point now, const route& from, const error& e);
  // It has echoed a heartbeat that was sent after `probe`. (Any frame wouldn't do: one can outlive its sender on the
  // way.)
  void handle_alive(session_id session);
  void handle_unsendable(time_point now, const route& r);  // nobody is there: EHOSTUNREACH, or no connection
  void handle_writable(time_point now, const route& r);    // a connecting socket has a connection (again)
  void handle_time(time_point now);

  // --- commands ---
  // This end gives the session up. `again`: a connecting end says HELLO anew.
  void end(time_point now, session_id session, bool again);
  // No new sessions; those that are open go on, over a new connection too.
  void close();
  // What HELLO and WELCOME say of this end; the counters in it change.
  greeting& self() { return self_; }
  void set_hello_interval(duration d) { hello_interval_ = d; }

  // --- outputs ---
  [[nodiscard]] time_point next_deadline() const;
  // Connecting sockets whose HELLO waits for a connection: the shell watches them for writability.
  [[nodiscard]] std::vector<route> wants_writable() const;
  std::vector<link_event> events;  // taken by the core after every input
  std::vector<outgoing> frames;

 private:
  enum class dial_state { unsent, unanswered, waiting, up, refused };
  struct dialing {
    dial_state state = dial_state::unsent;
    std::uint64_t connection = 0;  // rises with each fresh HELLO
    int tries = 0;                 // of the current number
    time_point first_sent{};
    time_point next{};
    std::optional<session_id> resume;
    session_id session = 0;
  };
  struct open_link {
    route to;
    std::string logical_id;
    std::uint64_t instance = 0;
    std::uint64_t connection = 0;
    bool routable = true;
    bool dialed = false;  // we are the connecting end
    duration heartbeat{};
    core::welcome answer;  // what a repeated HELLO gets again
    // Another instance under the same name, waiting for what the probe shows.
    struct newcomer {
      route from;
      core::hello greeting;
      time_point decided_at;  // silence until then: replaced
    };
    std::optional<newcomer> rival;
  };

  void say_hello(time_point now, const route& to, dialing& d);
  void open_accepted(time_point now, const route& from, const hello& h);
  void replace(time_point now, session_id session);
  void move(const route& from, session_id session, open_link& link);
  void refuse(const route& from, const hello& h, refusal why, std::string text);
  void drop(session_id session);  // forgets it here and reports `ended`
  [[nodiscard]] duration heartbeat_with(const greeting& peer) const;
  [[nodiscard]] bool may_greet(const dialing& d) const;
  [[nodiscard]] bool continues(const hello& h) const;

  greeting self_;
  duration hello_interval_;
  entropy& ids_;
  bool closed_ = false;
  std::map<route, dialing> dialing_;
  std::unordered_map<session_id, open_link> by_session_;
  std::map<route, session_id> by_route_;
  std::unordered_map<std::string, session_id> by_name_;  // accepted ones only
};

}  // namespace onay::core
