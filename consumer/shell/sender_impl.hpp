// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A sender's threads: the application's, which hand messages through the gate; one I/O thread, which owns the sockets
// and the core; and one for callbacks, once there are any.
#pragma once

#include "core/sender_core.hpp"
#include "shell/dead_letter_link.hpp"
#include "shell/entropy.hpp"
#include "shell/link_filter.hpp"
#include "shell/link_io.hpp"
#include "shell/question.hpp"
#include "shell/receipt_state.hpp"
#include "shell/send_gate.hpp"
#include "shell/side_thread.hpp"
#include "shell/socket_set.hpp"
#include "shell/wake.hpp"

#include <onay/sender.hpp>

#include <zmq.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace onay {

class sender::impl {
 public:
  // A null context: makes its own.
  impl(sender_options options, zmq::context_t* context, shell::link_filter* filter);
  ~impl();
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  // --- any thread ---
  send_result send(const message& m, std::optional<duration> timeout);
  bool wait_idle(duration timeout);
  close_report close(duration deadline);
  sender_status status();
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  // A settled message whose callbacks have to run before its room is free.
  struct called_back {
    std::shared_ptr<shell::receipt_state> receipt;
    std::uint64_t bytes = 0;
  };
  // What the callback thread shares with this object and may outlive it with.
  struct books {
    shell::wake wake;
    shell::send_gate gate;
    std::atomic<std::uint64_t> callback_failures{0};
    explicit books(const sender_options& o) : gate(o.unsettled_max, o.unsettled_bytes_max.bytes, wake) {}
  };

  // --- the I/O thread ---
  void io_main();
  bool take_submissions(core::instant now);
  bool take_commands(core::instant now);
  void hand_over();
  void hand_over_one(core::finished& f);
  void settle_receipt(std::shared_ptr<void>&& r, core::finished& f, bool last, std::uint64_t bytes);
  void sleep();
  bool part(core::instant now);
  bool bury(core::instant now);
  void last_words();
  [[nodiscard]] sender_status look() const;

  const sender_options options_;
  std::shared_ptr<books> books_;
  shell::mailbox<shell::command> commands_;
  shell::side_thread<called_back> callbacks_;
  std::unique_ptr<zmq::context_t> own_context_;

  // Made by the constructor, then the I/O thread's alone.
  shell::socket_set sockets_;
  shell::system_entropy entropy_;
  core::sender_core core_;  // but for `make_message`
  shell::link_io<core::sender_core> link_;
  std::unique_ptr<shell::dead_letter_link> letters_;  // null: what no consumer can bury waits
  std::vector<shell::dead_letter_link::confirmed> buried_;
  std::vector<shell::send_gate::submission> submissions_;
  std::vector<shell::command> taken_commands_;
  std::vector<called_back> with_callbacks_;
  std::vector<zmq::pollitem_t> poll_items_;
  std::uint64_t freed_ = 0, freed_bytes_ = 0;  // this turn's
  std::uint64_t unknown_ = 0;                  // receipts that ended as such
  time_point last_timers_{};
  time_point part_until_ = core::never;  // closing: how long BYE_OK is waited for

  const std::vector<std::string> addresses_;

  std::mutex close_mutex_;  // one closer at a time; no user code runs under it
  std::optional<close_report> closed_;

  std::mutex final_mutex_;
  sender_status final_;  // guarded by final_mutex_; the last one, once the I/O thread has ended

  std::thread io_;  // last: everything above is there before it starts
};

}  // namespace onay
