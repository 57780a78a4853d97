// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The ZeroMQ sockets of one side of one I/O thread: a ROUTER for each bound endpoint, a DEALER for each connecting one.
// A DEALER with several endpoints was rejected: it would spread commands over peers that aren't there.
//
// Made by the constructor of a sender or consumer, so that errors are thrown there, and from then on used by its I/O
// thread only.
#pragma once

#include "core/frames.hpp"
#include "core/instant.hpp"

#include <onay/endpoint.hpp>

#include <zmq.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace onay::shell {

class socket_set {
 public:
  // Throws setup_error, and leaves nothing open then. `largest_frame`: libzmq drops a connection that announces more.
  socket_set(zmq::context_t& context, const std::vector<endpoint>& endpoints, std::uint64_t largest_frame);
  ~socket_set();
  socket_set(const socket_set&) = delete;
  socket_set& operator=(const socket_set&) = delete;

  // --- getters ---
  // One for each endpoint, in their order; may be called from any thread.
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] std::vector<core::route> connections() const;  // of the connecting sockets
  [[nodiscard]] bool binds() const;

  // --- input ---
  enum class received { nothing, frame, bad };
  // The next frame of any socket, in turn. `bad`: not exactly one part; `from` says whose it was.
  received receive(core::route& from, zmq::message_t& body);

  // --- output ---
  // False: there is no such connection (now).
  bool send(const core::route& to, std::string_view bytes);

  // --- waiting ---
  // Adds what to poll for: frames, and room to write on the connecting sockets that `writable` names.
  void watch(std::vector<zmq::pollitem_t>& items, const std::vector<core::route>& writable) const;
  // Of the items that `watch` added from `first` on, those that can be written.
  void writable(const std::vector<zmq::pollitem_t>& items, std::size_t first, std::vector<core::route>& out) const;
  // libzmq never dials again after a protocol error (an oversized frame, a stranger on the port), nor after an inproc
  // peer closed. A connecting socket without a connection for some seconds is therefore made anew.
  void handle_time(time_point now);
  [[nodiscard]] time_point next_deadline(time_point now) const;

  // The frames sent last get `linger` to leave. No effect when closed already.
  void close(std::chrono::milliseconds linger);

 private:
  struct socket {
    endpoint where;
    zmq::socket_t handle;
    time_point down_since = core::never;  // a DEALER without a connection
    bool down = false;
    duration patience{};  // until it is made anew; jittered
  };

  zmq::socket_t open(const endpoint& where);
  bool read_body(zmq::socket_t& from, zmq::message_t& body);

  zmq::context_t& context_;
  std::uint64_t largest_frame_;
  std::minstd_rand spread_;  // of reconnection times, so that a herd of workers doesn't dial in step
  std::vector<socket> sockets_;
  std::vector<std::string> addresses_;
  std::size_t turn_ = 0;  // whose turn it is to be read, and for how many frames already
  std::size_t streak_ = 0;
  zmq::message_t id_;
};

// A context of one's own. Throws setup_error, also if the process has no descriptors left for it and so many endpoints:
// libzmq would abort the process then.
[[nodiscard]] std::unique_ptr<zmq::context_t> make_context(std::size_t io_threads, std::size_t endpoints);

}  // namespace onay::shell
