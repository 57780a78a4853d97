// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A link to a dead-letter collector, where its owner (a consumer, or a sender) is a sender: its own sockets and sender
// core, on the owner's I/O thread. What a letter waits for is the collector's confirmation, nothing else.
#pragma once

#include "core/sender_core.hpp"
#include "shell/entropy.hpp"
#include "shell/link_io.hpp"
#include "shell/socket_set.hpp"

#include <onay/endpoint.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onay::shell {

class dead_letter_link {
 public:
  // `origin`: the owner's logical id. `largest`: key + headers + payload of the largest message to be buried.
  dead_letter_link(zmq::context_t& context, const endpoint& where, const std::string& origin, std::uint64_t largest,
                   link_filter* filter);

  // --- getters ---
  [[nodiscard]] const std::vector<std::string>& addresses() const { return sockets_.addresses(); }
  // Letters that could leave at once.
  [[nodiscard]] std::uint64_t room() const;
  [[nodiscard]] std::uint64_t room_bytes() const;
  [[nodiscard]] bool connected() const { return !core_.sessions().empty(); }
  [[nodiscard]] const std::string& refused_by_peer() const { return core_.refused_by_peer(); }
  [[nodiscard]] bool close_done() const { return core_.close_done(); }

  // --- input ---
  void start(core::instant now) { link_.start(now); }
  auto receive(core::instant now) { return link_.receive(now); }
  void handle_time(core::instant now);

  // --- commands ---
  // The views needn't outlive the call. `owner` is given back with the confirmation.
  struct letter {
    message_id id;
    reason why = reason::none;
    const retry_record* record = nullptr;
    std::string_view headers;
    std::string_view payload;
    void* owner = nullptr;
  };
  void bury(core::instant now, const letter& l);
  // There was no room for a letter of this size.
  void want(core::instant now, std::uint64_t size) { core_.want_credit(now, size); }
  void begin_close(core::instant now) { core_.begin_close(now); }
  // The end of a turn. Puts into `buried` what the collector has confirmed. True if the next turn has something to do.
  struct confirmed {
    message_id id;
    void* owner = nullptr;
  };
  bool flush(core::instant now, std::vector<confirmed>& buried);
  void close(std::chrono::milliseconds linger) { sockets_.close(linger); }

  // --- waiting ---
  [[nodiscard]] time_point next_deadline(time_point now) const;
  void watch(std::vector<zmq::pollitem_t>& items) { link_.watch(items); }
  void watched(core::instant now, const std::vector<zmq::pollitem_t>& items) { link_.watched(now, items); }

 private:
  std::string origin_;
  system_entropy entropy_;
  socket_set sockets_;
  core::sender_core core_;
  link_io<core::sender_core> link_;
  std::string scratch_;
  // The letters under way. A message can come here a second time while its letter is: its session ended and it was
  // handed over anew. The second one waits for the first one's letter, which is the same.
  std::map<message_id, std::vector<void*>> under_way_;
};

}  // namespace onay::shell
