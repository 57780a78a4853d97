// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A consumer's threads: one I/O thread, which owns the sockets and both cores (its own, and the dead-letter link's);
// workers, which see deliveries only; and one for stop callbacks, once a stop token fires. Every thread holds a
// reference on this object, so a consumer may be destroyed by its own handler: the last one to leave cleans up.
#pragma once

#include "core/consumer_core.hpp"
#include "shell/dead_letter_link.hpp"
#include "shell/entropy.hpp"
#include "shell/link_filter.hpp"
#include "shell/link_io.hpp"
#include "shell/question.hpp"
#include "shell/run.hpp"
#include "shell/side_thread.hpp"
#include "shell/socket_set.hpp"

#include <onay/consumer.hpp>

#include <zmq.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace onay {

class consumer::impl : public std::enable_shared_from_this<consumer::impl> {
 public:
  using any_handler = std::variant<onay::handler, async_handler>;

  // A null context: makes its own. Null filters: none.
  impl(consumer_options options, any_handler handle, zmq::context_t* context, shell::link_filter* filter,
       shell::link_filter* dead_letter_filter);
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  // --- any thread ---
  void start();
  stop_report run();
  stop_report stop(duration deadline);
  void request_stop(duration deadline);
  void pause();
  void resume();
  consumer_status status();
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  // The consumer object is going away.
  void destroy();

 private:
  enum class stage { created, running, stopped };
  // An attempt whose stop token is to be fired.
  struct firing {
    std::shared_ptr<shell::run> run;
    std::uint64_t generation = 0;
  };

  [[nodiscard]] bool on_own_thread() const;
  stop_report wait_stopped();

  // --- workers (worker.cpp) ---
  void work();
  void work_sync(const onay::handler& handle, shell::run& r);
  void work_async(const async_handler& handle);
  [[nodiscard]] bool may_start(const core::held& d, time_point now) const;
  [[nodiscard]] time_point deadline_of(const core::held& d, time_point now) const;
  [[nodiscard]] outcome thrown(bool stopped) const;

  // --- the I/O thread (consumer_loop.cpp) ---
  void io_main();
  bool turn(core::instant now);
  bool take_ends(core::instant now);
  bool take_commands(core::instant now);
  void judge_timers(core::instant now);
  void watch_starts(core::instant now, bool at_once);
  void fire_stops();
  void fire_overdue_stops(time_point now);
  void reclaim(core::instant now);
  void begin_stop(core::instant now, time_point deadline);
  [[nodiscard]] bool stopped_by_now(time_point now);
  void sleep();
  void last_words();
  [[nodiscard]] stop_report report();
  [[nodiscard]] consumer_status look();

  const consumer_options options_;
  const any_handler handle_;
  const std::shared_ptr<shell::workshop> home_;
  shell::mailbox<shell::command> commands_;
  shell::side_thread<firing> stop_callbacks_;
  std::unique_ptr<zmq::context_t> own_context_;

  // Made by the constructor, then the I/O thread's alone.
  shell::socket_set sockets_;
  shell::system_entropy entropy_;
  core::consumer_core core_;
  shell::link_io<core::consumer_core> link_;
  std::unique_ptr<shell::dead_letter_link> letters_;  // null: discards or collects
  std::vector<core::run_end> ends_;
  std::vector<core::held*> reclaimed_;
  std::vector<shell::dead_letter_link::confirmed> buried_;
  std::vector<shell::command> taken_commands_;
  std::vector<firing> firings_;
  std::vector<zmq::pollitem_t> poll_items_;
  time_point last_timers_{};
  time_point last_watch_{};
  time_point stop_deadline_ = core::never;  // stopping: until when
  std::string stop_error_;                  // why it stopped by itself

  const std::vector<std::string> addresses_;

  std::mutex mutex_;
  std::condition_variable changed_;
  stage stage_ = stage::created;  // guarded by mutex_, like the rest
  stop_report report_;
  consumer_status final_;  // the last answer; the final one once stopped
  std::vector<std::thread> workers_;
  std::thread io_;
};

}  // namespace onay
