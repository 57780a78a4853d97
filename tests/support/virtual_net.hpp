// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A virtual clock, and links with the semantics that ZeroMQ really has: frames of one connection arrive in order or not
// at all, everything in flight dies with the connection, a send to nobody is reported, a dialer reconnects by itself.
#pragma once

#include "core/frames.hpp"
#include "core/instant.hpp"
#include "wire/codec.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace onay::test {

// A process's socket: what the net needs of whoever owns it.
class port {
 public:
  virtual ~port() = default;
  virtual void handle_frame(const core::route& from, const core::frame& f,
                            const std::shared_ptr<const void>& buffer) = 0;
  virtual void handle_unreadable(const core::route& from, const wire::unreadable& u) = 0;
  virtual void handle_unsendable(const core::route& to) = 0;
  virtual void handle_writable(const core::route& to) = 0;
};

enum class fate { pass, drop, duplicate, swap_with_next };

class virtual_net {
 public:
  time_point now{std::chrono::hours(100)};
  utc_time utc{std::chrono::hours(24 * 365 * 50)};
  duration latency = std::chrono::microseconds(200);
  duration reconnect = std::chrono::milliseconds(100);
  // Decides what becomes of each frame; `from_dialer` tells the direction.
  std::function<fate(const core::frame&, bool from_dialer)> fate_of;
  std::uint64_t frames_sent = 0, bytes_sent = 0, unreadable = 0;

  [[nodiscard]] core::instant instant() const { return {now, utc + (now - time_point(std::chrono::hours(100)))}; }

  void bind(const std::string& address, port* p, std::uint32_t socket) { binders_[address] = {p, socket}; }
  void dial(const std::string& address, port* p, std::uint32_t socket) {
    dialers_.push_back({address, p, socket, now, 0});
  }

  // The process is gone: its connections die, its ports hear nothing more.
  void remove(port* p) {
    std::erase_if(binders_, [&](const auto& b) { return b.second.owner == p; });
    for (auto& [id, c] : connections_) {
      if (c.binder.owner == p || c.dialer.owner == p) {
        c.alive = false;
      }
    }
    std::erase_if(dialers_, [&](const dialer& d) { return d.owner == p; });
  }

  // Everything in flight is lost; the dialers come back after `reconnect`.
  void cut_all() {
    for (auto& [id, c] : connections_) {
      c.alive = false;
    }
    for (auto& d : dialers_) {
      d.connection = 0;
      d.retry_at = now + reconnect;
    }
  }

  // False: nobody is there.
  bool send(port* from, const core::route& to, const core::frame& f) {
    connection* c = nullptr;
    bool from_dialer = to.peer.empty();
    if (from_dialer) {
      for (auto& d : dialers_) {
        if (d.owner == from && d.socket == to.socket && d.connection != 0) {
          c = &connections_.at(d.connection);
        }
      }
    } else if (auto it = connections_.find(std::stoull(to.peer));
               it != connections_.end() && it->second.binder.owner == from) {
      c = &it->second;
    }
    if (c == nullptr || !c->alive) {
      return false;
    }
    ++frames_sent;
    auto bytes = std::make_shared<std::string>();
    wire::encode(f, *bytes);
    bytes_sent += bytes->size();
    const auto what = fate_of ? fate_of(f, from_dialer) : fate::pass;
    if (what == fate::drop) {
      return true;
    }
    transit t{now + latency, sequence_++, c->id, from_dialer, bytes};
    if (what == fate::swap_with_next) {
      t.at += 3 * latency;
    }
    in_flight_.emplace(std::pair(t.at, t.sequence), t);
    if (what == fate::duplicate) {
      t.sequence = sequence_++;
      in_flight_.emplace(std::pair(t.at, t.sequence), t);
    }
    return true;
  }

  // Bytes as a hostile peer sends them.
  void inject(const core::route& binder_route, port* binder, const std::string& bytes) {
    give(binder, binder_route, std::make_shared<std::string>(bytes));
  }

  [[nodiscard]] time_point next_event() const {
    auto next = in_flight_.empty() ? core::never : in_flight_.begin()->first.first;
    for (const auto& d : dialers_) {
      if (d.connection == 0 && binders_.contains(d.address)) {
        next = std::min(next, std::max(d.retry_at, now));
      } else if (d.connection != 0 && !connections_.at(d.connection).alive) {
        next = std::min(next, now);
      }
    }
    return next;
  }

  // Hands over what is due. The ports' owners take their turn afterwards.
  void deliver_due() {
    for (auto& d : dialers_) {
      if (d.connection != 0 && !connections_.at(d.connection).alive) {
        d.connection = 0;
        d.retry_at = now + reconnect;
      }
    }
    // A port may send while it is called: walk over a copy.
    const auto dialers = dialers_;
    for (std::size_t i = 0; i < dialers.size(); ++i) {
      auto& d = dialers_[i];
      auto b = binders_.find(d.address);
      if (d.connection == 0 && d.retry_at <= now && b != binders_.end()) {
        d.connection = ++last_connection_;
        connections_[d.connection] = {d.connection, {d.owner, d.socket}, b->second, true};
        d.owner->handle_writable({d.socket, ""});
      }
    }
    while (!in_flight_.empty() && in_flight_.begin()->first.first <= now) {
      auto t = in_flight_.begin()->second;
      in_flight_.erase(in_flight_.begin());
      auto& c = connections_.at(t.connection);
      if (!c.alive) {
        continue;
      }
      if (t.from_dialer) {
        give(c.binder.owner, {c.binder.socket, std::to_string(c.id)}, t.bytes);
      } else {
        give(c.dialer.owner, {c.dialer.socket, ""}, t.bytes);
      }
    }
  }

 private:
  struct place {
    port* owner = nullptr;
    std::uint32_t socket = 0;
  };
  struct dialer {
    std::string address;
    port* owner;
    std::uint32_t socket;
    time_point retry_at;
    std::uint64_t connection;
  };
  struct connection {
    std::uint64_t id = 0;
    place dialer;
    place binder;
    bool alive = false;
  };
  struct transit {
    time_point at;
    std::uint64_t sequence;
    std::uint64_t connection;
    bool from_dialer;
    std::shared_ptr<std::string> bytes;
  };

  void give(port* p, const core::route& from, const std::shared_ptr<std::string>& bytes) {
    core::frame f;
    if (auto bad = wire::decode(*bytes, f)) {
      ++unreadable;
      p->handle_unreadable(from, *bad);
    } else {
      p->handle_frame(from, f, bytes);
    }
  }

  std::map<std::string, place> binders_;
  std::vector<dialer> dialers_;
  std::map<std::uint64_t, connection> connections_;
  std::map<std::pair<time_point, std::uint64_t>, transit> in_flight_;
  std::uint64_t sequence_ = 0;
  std::uint64_t last_connection_ = 0;
};

}  // namespace onay::test
