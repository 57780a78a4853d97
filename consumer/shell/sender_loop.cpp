// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The sender's I/O thread: one turn after the other, and nothing in it waits but the poll.
#include "shell/clock.hpp"
#include "shell/sender_impl.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace onay {

namespace {

// Timers are judged when nothing waits to be read, because a heartbeat may be among it; but under constant load at
// least this often.
constexpr duration timers_longest = std::chrono::milliseconds(50);
// What the frames sent last get to leave the process.
constexpr std::chrono::milliseconds last_linger(200);

}  // namespace

void sender::impl::io_main() {
  link_.start(shell::read_clocks());
  if (letters_) {
    letters_->start(shell::read_clocks());
  }
  for (;;) {
    const auto now = shell::read_clocks();
    bool busy = take_submissions(now);
    const auto received = link_.receive(now);
    busy = take_commands(now) || received.any || busy;
    if (received.dry || now.boot - last_timers_ >= timers_longest) {
      core_.handle_time(now);
      link_.handle_time(now);
      if (letters_) {
        letters_->handle_time(now);
      }
      last_timers_ = now.boot;
    }
    if (letters_) {
      busy = letters_->receive(now).any || busy;
      core_.set_burial_room(letters_->room(), letters_->room_bytes());
    }
    core_.flush(now);
    busy = link_.send(now) || busy;
    busy = bury(now) || busy;
    hand_over();
    if (part_until_ != core::never && part(now)) {
      break;
    }
    if (!busy) {
      sleep();
    }
  }
  last_words();
}

// This sender's own dead letters: of messages that no connected consumer can bury.
bool sender::impl::bury(core::instant now) {
  if (!letters_) {
    return false;
  }
  for (const auto& b : core_.burials) {
    letters_->bury(now, {b.id, b.why, &b.record, b.message->headers(), b.message->payload(), nullptr});
  }
  core_.burials.clear();
  if (const auto size = core_.burial_wish(); size > 0) {
    letters_->want(now, size);
  }
  const bool told = letters_->flush(now, buried_);
  for (const auto& b : buried_) {
    core_.handle_buried(now, b.id.number);
  }
  return !std::exchange(buried_, {}).empty() || told;
}

bool sender::impl::take_submissions(core::instant now) {
  if (!books_->gate.take(submissions_)) {
    return false;
  }
  for (std::size_t i = 0; i < submissions_.size(); ++i) {
    auto& s = submissions_[i];
    if (i + 8 < submissions_.size()) {
      core::prefetch(submissions_[i + 8].message.get(), sizeof(core::stored_message) + 64);
    }
    if (i + 4 < submissions_.size()) {
      core_.messages().prefetch_lookup(*submissions_[i + 4].message);
    }
    const auto size = s.message->size();
    if (core_.submit(now, std::move(s.message), s.deadline) == core::sender_core::submitted::joined) {
      freed_bytes_ += size;  // its bytes are gone; its receipt still counts as a message
    }
  }
  submissions_.clear();
  return true;
}

bool sender::impl::take_commands(core::instant now) {
  if (!commands_.take(taken_commands_)) {
    return false;
  }
  for (auto& c : taken_commands_) {
    c(now);
  }
  taken_commands_.clear();
  return true;
}

// Tells receipts their outcome and gives their room back, all of a turn under one lock.
void sender::impl::hand_over() {
  for (auto& f : core_.finished_messages) {
    hand_over_one(f);
  }
  core_.finished_messages.clear();
  if (!with_callbacks_.empty()) {
    callbacks_.post(with_callbacks_);
  }
  if (!core_.removed_messages().empty()) {
    books_->gate.discard(core_.removed_messages());
  }
  if (freed_ > 0 || freed_bytes_ > 0) {
    books_->gate.leave(std::exchange(freed_, 0), std::exchange(freed_bytes_, 0));
  }
}

void sender::impl::hand_over_one(core::finished& f) {
  const bool alone = f.joined == nullptr || f.joined->empty();
  settle_receipt(std::move(f.receipt), f, alone, f.size);
  if (!alone) {
    for (auto& r : *f.joined) {
      settle_receipt(std::move(r), f, &r == &f.joined->back(), 0);
    }
  }
}

void sender::impl::settle_receipt(std::shared_ptr<void>&& r, core::finished& f, bool last, std::uint64_t bytes) {
  auto receipt = std::static_pointer_cast<shell::receipt_state>(std::move(r));
  bool has_callbacks = false;
  if (f.state == final_state::accepted && f.result.empty()) {
    has_callbacks = receipt->finish_plain();
  } else {
    auto m = std::make_unique<settled_message>();
    m->state = f.state;
    m->why = f.why;
    m->result = last ? std::move(f.result) : f.result;
    if (f.record) {
      m->record = last ? std::move(*f.record) : *f.record;
    }
    has_callbacks = receipt->finish(std::move(m));
  }
  unknown_ += f.state == final_state::unknown ? 1 : 0;
  if (has_callbacks) {
    with_callbacks_.push_back({std::move(receipt), bytes});
  } else {
    ++freed_;
    freed_bytes_ += bytes;
  }
}

void sender::impl::sleep() {
  if (!books_->gate.sleep() || !commands_.sleep()) {
    return;
  }
  poll_items_.clear();
  poll_items_.push_back({nullptr, books_->wake.descriptor(), ZMQ_POLLIN, 0});
  link_.watch(poll_items_);
  const auto now = boot_clock::now();
  auto deadline = std::min({core_.next_deadline(), link_.next_deadline(now), part_until_});
  if (letters_) {
    letters_->watch(poll_items_);
    deadline = std::min(deadline, letters_->next_deadline(now));
  }
  // An interrupted poll is a short sleep.
  (void)zmq_poll(poll_items_.data(), int(poll_items_.size()), shell::poll_timeout_ms(now, deadline));
  if ((poll_items_[0].revents & ZMQ_POLLIN) != 0) {
    books_->wake.clear();
  }
  link_.watched(shell::read_clocks(), poll_items_);
  if (letters_) {
    letters_->watched(shell::read_clocks(), poll_items_);
  }
}

// Closing: true once the peers have answered our BYE, or had their time to.
bool sender::impl::part(core::instant now) { return core_.close_done() || now.boot >= part_until_; }

void sender::impl::last_words() {
  const auto now = shell::read_clocks();
  take_submissions(now);  // what entered the gate in its last moment
  core_.abandon_all(now);
  hand_over();
  {
    const std::lock_guard lock(final_mutex_);
    final_ = look();
  }
  commands_.close();
  if (letters_) {
    letters_->begin_close(now);
    letters_->flush(now, buried_);
    letters_->close(last_linger);
  }
  sockets_.close(last_linger);
}

sender_status sender::impl::look() const {
  const auto& c = core_.counters();
  const auto& held = core_.messages();
  sender_status s;
  s.sent = c.sent;
  s.accepted = c.accepted;
  s.dead_lettered = c.dead_lettered;
  s.joined = c.joined;
  s.refused = c.refused;
  s.first_attempt_successes = c.first_attempt_successes;
  s.successes_after_retry = c.successes_after_retry;
  s.ready = held.ready();
  s.parked = held.parked();
  s.delivered = core_.delivered();
  s.condemned = held.condemned();
  s.unsettled = s.ready + s.parked + s.delivered;
  s.unsettled_bytes = books_->gate.look().bytes;
  s.overdue = core_.overdue();
  s.undeliverable = core_.undeliverable();
  s.redeliveries = c.redeliveries;
  s.resent_copies = c.resent_copies;
  s.peers_lost = c.peers_lost;
  s.late_accepts = c.late_accepts;
  s.stale_verdicts = c.stale_verdicts;
  s.bad_frames = c.bad_frames;
  s.callback_failures = books_->callback_failures.load(std::memory_order_relaxed);
  for (const auto& [id, session] : core_.sessions()) {
    s.peers.push_back({session->peer.logical_id,
                       session->to.socket < addresses_.size() ? addresses_[session->to.socket] : std::string(),
                       core_.ready(id), session->tags.size(), session->free_credit()});
  }
  s.refused_by_peer = core_.refused_by_peer();
  return s;
}

}  // namespace onay
