// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// One end's view of one session's heartbeats: numbers and echoes, the lease, and when to ask for an answer.
//
// The picture: two people on a bad line who count aloud. Each says its own next number and the highest it heard from
// the other. Whoever hears its own number come back knows that the other was there after it was said.
//
// The lease is the only timer of ownership. The consumer's end of it is counted from when it *first sent* the echo that
// the sender has acknowledged, the sender's from when it *received* that echo, plus two heartbeats: so the consumer
// always stops first, whatever the line did in between.
#pragma once

#include "core/frames.hpp"
#include "core/instant.hpp"

#include <cstdint>
#include <deque>

namespace onay::core {

class pulse {
 public:
  // `start`: consumer: an instant before the sender could count from; sender: when the session opened here.
  pulse(role own, duration lease, duration heartbeat, time_point start);

  // --- getters ---
  [[nodiscard]] std::uint64_t sent() const { return sent_; }      // own newest number
  [[nodiscard]] std::uint64_t seen() const { return seen_; }      // the peer's newest
  [[nodiscard]] std::uint64_t echoed() const { return echoed_; }  // own newest that the peer has echoed
  [[nodiscard]] time_point lease_end() const;
  [[nodiscard]] duration heartbeat() const { return heartbeat_; }
  [[nodiscard]] duration lease() const { return lease_; }
  // What is sent now is covered as soon as the peer echoes this number.
  [[nodiscard]] std::uint64_t mark() const { return sent_ + 1; }

  // --- inputs ---
  struct heard {
    bool fresh = false;     // false: older than one seen before, or impossible; ignore the heartbeat
    bool progress = false;  // a newer number of ours came back
  };
  heard handle_heartbeat(time_point now, std::uint64_t number, std::uint64_t echo, bool answer_now);
  // This end was held up for `excess`: that is not the peer's silence.
  void forgive(duration excess);

  // --- commands ---
  // Something is on its way that the peer must react to: without a sign within a moment, ask. The interval starts small
  // and doubles up to a heartbeat, so a lost frame costs about a round trip and a dead line almost nothing.
  void expect_answer(time_point now);
  // The same, but nothing new was sent: keep asking at the interval reached so far.
  void keep_expecting(time_point now);
  void stop_expecting() { probe_at_ = never; }
  void send_soon() { owed_ = true; }

  // --- outputs ---
  [[nodiscard]] bool due(time_point now) const { return owed_ || now >= next_ || now >= probe_at_; }
  [[nodiscard]] time_point next_deadline() const { return owed_ ? time_point::min() : std::min(next_, probe_at_); }
  struct beat {
    std::uint64_t number = 0;
    std::uint64_t echo = 0;
    bool answer_now = false;
  };
  // The heartbeat to send now.
  beat next_beat(time_point now);

 private:
  struct sent_beat {
    std::uint64_t number;
    time_point echo_first_sent;
  };

  [[nodiscard]] duration first_probe() const {
    return std::max<duration>(heartbeat_ / 20, std::chrono::milliseconds(1));
  }

  role own_;
  duration lease_;
  duration heartbeat_;
  std::uint64_t sent_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t echoed_ = 0;
  time_point lease_start_;
  time_point next_;
  time_point probe_at_ = never;
  duration probe_interval_;
  bool owed_ = true;  // a new session begins with a heartbeat
  // Consumer only: for each heartbeat not echoed yet, when the echo that it carried was first sent.
  std::deque<sent_beat> unechoed_;
  std::uint64_t last_echo_ = 0;
  time_point last_echo_first_sent_ = time_point::min();
};

}  // namespace onay::core
