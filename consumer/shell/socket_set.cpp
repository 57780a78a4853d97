// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/socket_set.hpp"

#include "shell/entropy.hpp"

#include <onay/error.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

namespace onay::shell {

namespace {

// Milliseconds. A peer that says nothing after TCP's handshake is a stranger.
constexpr int handshake_ms = 5'000;
constexpr int connect_ms = 5'000;
// A half-open connection ends after this much unacknowledged data, not after the kernel's quarter of an hour.
// ZeroMQ's own heartbeats were rejected: on a slow line one large message in flight looks like silence to them.
constexpr int unacknowledged_ms = 20'000;
constexpr int reconnect_ms = 100;
constexpr int reconnect_spread_ms = 100;
constexpr int reconnect_max_ms = 2'000;
constexpr int backlog = 1'024;
constexpr std::size_t streak_max = 32;
// A connecting socket without a connection is made anew after this, plus up to as much again.
constexpr duration patience_network = std::chrono::seconds(10);
constexpr duration patience_inproc = std::chrono::milliseconds(500);  // libzmq never dials these again

template <class T>
void set(zmq::socket_t& s, int option, T value) {
  if (zmq_setsockopt(s.handle(), option, &value, sizeof value) != 0) {
    throw zmq::error_t();
  }
}

bool is_inproc(const endpoint& e) { return e.address.starts_with("inproc:"); }

std::string hint_for(int error) {
  switch (error) {
    case EADDRINUSE:
      return "Stop the other process, or choose another port; trying again later makes sense.";
    case EADDRNOTAVAIL:
      return "This machine has no interface with that address; trying again makes sense once it is up.";
    case ENODEV:
      return "To bind, name an address in numbers (127.0.0.1), an interface of this machine, or * for all; a host name "
             "like localhost is for connecting.";
    case EACCES:
    case EPERM:
      return "Choose a port above 1023 or another path, or run with the permission; trying again changes nothing.";
    case EMFILE:
    case ENFILE:
      return "Raise the descriptor limit (ulimit -n); trying again makes sense once some are free.";
    default:
      return "Check the address; trying again as it is changes nothing.";
  }
}

setup_error failure(const endpoint& e, const char* what, int error) {
  return setup_error(std::string("cannot ") + what + " \"" + e.address + "\": " + zmq_strerror(error) + ". " +
                     hint_for(error));
}

// The calls below retry on EINTR: a signal handler without SA_RESTART may interrupt any of them.
int send_part(zmq::socket_t& s, std::string_view bytes, int flags) {
  int rc = 0;
  do {
    rc = zmq_send(s.handle(), bytes.data(), bytes.size(), flags);
  } while (rc < 0 && zmq_errno() == EINTR);
  return rc;
}

bool receive_part(zmq::socket_t& s, zmq::message_t& into) {
  int rc = 0;
  do {
    rc = zmq_msg_recv(into.handle(), s.handle(), ZMQ_DONTWAIT);
  } while (rc < 0 && zmq_errno() == EINTR);
  return rc >= 0;
}

}  // namespace

socket_set::socket_set(zmq::context_t& context, const std::vector<endpoint>& endpoints, std::uint64_t largest_frame)
    : context_(context), largest_frame_(largest_frame), spread_(std::uint32_t(random_bits() | 1U)) {
  for (const auto& e : endpoints) {
    sockets_.push_back({e, open(e), core::never, false, {}});
    if (e.how == endpoint::mode::bind) {
      addresses_.push_back(sockets_.back().handle.get(zmq::sockopt::last_endpoint));
    } else {
      addresses_.push_back(e.address);
    }
  }
}

socket_set::~socket_set() { close(std::chrono::milliseconds(0)); }

zmq::socket_t socket_set::open(const endpoint& where) {
  const bool binds = where.how == endpoint::mode::bind;
  zmq::socket_t s;
  try {
    s = zmq::socket_t(context_, binds ? zmq::socket_type::router : zmq::socket_type::dealer);
    set(s, ZMQ_LINGER, 0);
    // Credit is the bound. A high-water mark would drop or block behind its back, in the middle of a command.
    set(s, ZMQ_SNDHWM, 0);
    set(s, ZMQ_RCVHWM, 0);
    set(s, ZMQ_MAXMSGSIZE,
        std::int64_t(std::min<std::uint64_t>(largest_frame_, std::numeric_limits<std::int64_t>::max())));
    set(s, ZMQ_HANDSHAKE_IVL, handshake_ms);
    set(s, ZMQ_TCP_KEEPALIVE, 1);
    set(s, ZMQ_TCP_KEEPALIVE_IDLE, 30);
    set(s, ZMQ_TCP_KEEPALIVE_INTVL, 10);
    set(s, ZMQ_TCP_KEEPALIVE_CNT, 3);
    set(s, ZMQ_TCP_MAXRT, unacknowledged_ms);
    set(s, ZMQ_IPV6, 0);
    if (binds) {
      // Without it a frame for a peer that is gone vanishes without a word. No HANDOVER: who owns a logical id is
      // decided by the protocol.
      set(s, ZMQ_ROUTER_MANDATORY, 1);
      set(s, ZMQ_BACKLOG, backlog);
    } else {
      set(s, ZMQ_IMMEDIATE, 1);  // nothing is queued for a connection that isn't there
      set(s, ZMQ_CONNECT_TIMEOUT, connect_ms);
      set(s, ZMQ_RECONNECT_IVL, reconnect_ms + int(spread_() % reconnect_spread_ms));
      set(s, ZMQ_RECONNECT_IVL_MAX, reconnect_max_ms + int(spread_() % (10 * reconnect_spread_ms)));
    }
  } catch (const zmq::error_t& e) {
    throw failure(where, "open a socket for", e.num());
  }
  int rc = 0;
  do {
    rc = binds ? zmq_bind(s.handle(), where.address.c_str()) : zmq_connect(s.handle(), where.address.c_str());
  } while (rc != 0 && zmq_errno() == EINTR);
  if (rc != 0) {
    throw failure(where, binds ? "bind" : "connect to", zmq_errno());
  }
  return s;
}

std::vector<core::route> socket_set::connections() const {
  std::vector<core::route> result;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    if (sockets_[i].where.how == endpoint::mode::connect) {
      result.push_back({std::uint32_t(i), {}});
    }
  }
  return result;
}

bool socket_set::binds() const {
  return std::any_of(sockets_.begin(), sockets_.end(),
                     [](const socket& s) { return s.where.how == endpoint::mode::bind; });
}

// The last part of what has begun to arrive; false if there was none, or more than one.
bool socket_set::read_body(zmq::socket_t& from, zmq::message_t& body) {
  bool one = receive_part(from, body);
  while (body.more()) {
    one = false;
    if (!receive_part(from, body)) {
      break;
    }
  }
  return one;
}

socket_set::received socket_set::receive(core::route& from, zmq::message_t& body) {
  for (std::size_t tried = 0; tried < sockets_.size(); ++tried) {
    const auto index = turn_;
    auto& s = sockets_[index];
    const bool binds = s.where.how == endpoint::mode::bind;
    const bool got = receive_part(s.handle, binds ? id_ : body);
    // Asking an empty socket costs a system call, so one that has frames is read for a while before the next has its
    // turn.
    if (!got || ++streak_ >= streak_max) {
      streak_ = 0;
      turn_ = turn_ + 1 == sockets_.size() ? 0 : turn_ + 1;
    }
    if (!got) {
      continue;
    }
    from.socket = std::uint32_t(index);
    if (binds) {
      from.peer.assign(static_cast<const char*>(id_.data()), id_.size());
      return id_.more() && read_body(s.handle, body) ? received::frame : received::bad;
    }
    from.peer.clear();
    if (body.more()) {
      (void)read_body(s.handle, body);
      return received::bad;
    }
    return received::frame;
  }
  return received::nothing;
}

bool socket_set::send(const core::route& to, std::string_view bytes) {
  if (to.socket >= sockets_.size()) {
    return false;
  }
  auto& s = sockets_[to.socket];
  if (s.where.how == endpoint::mode::bind) {
    // EHOSTUNREACH, or EAGAIN from a pipe that is being closed. Once the id is taken the body is too.
    return send_part(s.handle, to.peer, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
           send_part(s.handle, bytes, ZMQ_DONTWAIT) >= 0;
  }
  const bool sent = send_part(s.handle, bytes, ZMQ_DONTWAIT) >= 0;
  if (sent) {
    s.down = false;
  } else if (!s.down) {
    s.down = true;
    s.down_since = core::never;  // `handle_time` knows the time
  }
  return sent;
}

void socket_set::watch(std::vector<zmq::pollitem_t>& items, const std::vector<core::route>& writable) const {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const bool write = sockets_[i].where.how == endpoint::mode::connect &&
                       std::any_of(writable.begin(), writable.end(), [&](const auto& r) { return r.socket == i; });
    auto* handle = const_cast<zmq::socket_t&>(sockets_[i].handle).handle();
    items.push_back({handle, handle == nullptr ? -1 : 0, short(write ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN), 0});
  }
}

void socket_set::writable(const std::vector<zmq::pollitem_t>& items, std::size_t first,
                          std::vector<core::route>& out) const {
  out.clear();
  for (std::size_t i = 0; i < sockets_.size() && first + i < items.size(); ++i) {
    if ((items[first + i].revents & ZMQ_POLLOUT) != 0) {
      out.push_back({std::uint32_t(i), {}});
    }
  }
}

void socket_set::handle_time(time_point now) {
  for (auto& s : sockets_) {
    if (!s.down) {
      continue;
    }
    if (s.down_since == core::never) {
      const auto base = is_inproc(s.where) ? patience_inproc : patience_network;
      s.down_since = now;
      s.patience = base + base * (spread_() % 1000U) / 1000;
      continue;
    }
    if (now - s.down_since < s.patience) {
      continue;
    }
    s.down_since = core::never;
    s.handle.close();
    try {
      s.handle = open(s.where);
    } catch (const setup_error&) {
      // No descriptor now. The closed handle answers every call with ENOTSOCK, which is "no connection"; tried again.
    }
  }
}

time_point socket_set::next_deadline(time_point now) const {
  auto next = core::never;
  for (const auto& s : sockets_) {
    if (s.down) {
      next = std::min(next, s.down_since == core::never ? now : s.down_since + s.patience);
    }
  }
  return next;
}

void socket_set::close(std::chrono::milliseconds linger) {
  for (auto& s : sockets_) {
    if (s.handle.handle() != nullptr) {
      const int ms = int(linger.count());
      zmq_setsockopt(s.handle.handle(), ZMQ_LINGER, &ms, sizeof ms);
      s.handle.close();
    }
  }
  sockets_.clear();
}

std::unique_ptr<zmq::context_t> make_context(std::size_t io_threads, std::size_t endpoints) {
  // What libzmq was seen to open: two for the context, two for the reaper and each I/O thread, and for an endpoint its
  // socket's mailbox, a listener or connection, and a spare one.
  const std::size_t wanted = 4 + 2 * io_threads + 3 * endpoints;
  std::vector<int> probes;
  int error = 0;
  while (probes.size() < wanted && error == 0) {
    const int fd = eventfd(0, EFD_CLOEXEC);
    if (fd < 0) {
      error = errno;
    } else {
      probes.push_back(fd);
    }
  }
  for (int fd : probes) {
    ::close(fd);
  }
  if (error != 0) {
    throw setup_error(std::string("no descriptors left for ZeroMQ: ") + zmq_strerror(error) + ". " + hint_for(error));
  }
  try {
    return std::make_unique<zmq::context_t>(int(io_threads));
  } catch (const zmq::error_t& e) {
    throw setup_error(std::string("cannot make a ZeroMQ context: ") + e.what() + ". " + hint_for(e.num()));
  }
}

}  // namespace onay::shell
