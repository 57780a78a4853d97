// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Carries frames between one core and its sockets: decodes into the core, encodes what the core makes, through the
// filter if there is one. Owned by one I/O thread.
#pragma once

#include "core/consumer_core.hpp"
#include "core/sender_core.hpp"
#include "shell/link_filter.hpp"
#include "shell/socket_set.hpp"
#include "wire/codec.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace onay::shell {

// Keeps the views of a DELIVER alive. Large frames stay where ZeroMQ read them; a small one is copied, because it would
// keep the whole read buffer (8 KiB) that it lies in.
struct frame_buffer {
  zmq::message_t message;
  std::string copy;
};
inline constexpr std::size_t copied_below = 8U << 10U;

// The first element of a command, without decoding it; 0 if it isn't there.
[[nodiscard]] inline std::uint8_t type_of(std::string_view bytes) {
  const bool is_array = bytes.size() >= 2 && (std::uint8_t(bytes[0]) & 0xf0U) == 0x90U;
  return is_array && std::uint8_t(bytes[1]) < 0x80U ? std::uint8_t(bytes[1]) : 0;
}

template <class Core>
class link_io {
 public:
  link_io(Core& core, socket_set& sockets, link_filter* filter) : core_(core), sockets_(sockets), filter_(filter) {}

  // Adds the connections whose sockets dial.
  void start(core::instant now) {
    for (const auto& r : sockets_.connections()) {
      core_.add_connection(now, r);
    }
  }

  struct progress {
    bool any = false;  // something came
    bool dry = true;   // and nothing waits any more
  };
  // Feeds what waits to the core, up to a turn's budget.
  progress receive(core::instant now) {
    progress result;
    std::size_t frames = 0;
    std::size_t bytes = 0;
    while (true) {
      if (frames >= frames_per_turn || bytes >= bytes_per_turn) {
        result.dry = false;
        break;
      }
      const auto got = sockets_.receive(from_, body_);
      if (got == socket_set::received::nothing) {
        break;
      }
      ++frames;
      result.any = true;
      if (got == socket_set::received::bad) {
        core_.handle_unreadable(now, from_, 0, {}, "a command is one ZeroMQ frame");
        continue;
      }
      bytes += body_.size();
      const std::string_view view(static_cast<const char*>(body_.data()), body_.size());
      if (filter_ != nullptr) {
        filter_->submit(now.boot,
                        {filtered_frame::direction::in, from_, core::frame_type(type_of(view)), std::string(view)});
      } else {
        feed_body(now, view);
      }
    }
    return result;
  }

  // Sends what the core has made, and lets the filter's frames go on. True if the core was told something by that.
  bool send(core::instant now) {
    bool told = false;
    // A frame that can't be sent is news for the core, and may make it answer; twice is enough for one turn.
    for (int round = 0; round < 2 && (round == 0 || !core_.frames.empty()); ++round) {
      for (const auto& f : core_.frames) {
        wire::encode(f.frame, scratch_);
        if (filter_ != nullptr) {
          filter_->submit(now.boot,
                          {filtered_frame::direction::out, f.to, core::frame_type(f.frame.index() + 1), scratch_});
        } else if (!sockets_.send(f.to, scratch_)) {
          unsendable_.push_back(f.to);
        }
      }
      core_.frames.clear();
      if (scratch_.capacity() > scratch_kept) {
        scratch_ = {};
      }
      // Only now: the frames' views end with the next call into the core.
      told = !unsendable_.empty() || told;
      for (const auto& r : unsendable_) {
        core_.handle_unsendable(now, r);
      }
      unsendable_.clear();
      told = (filter_ != nullptr && release(now)) || told;
    }
    return told;
  }

  // Sockets without a connection; call where timers are judged. Looks for new connections too: an I/O thread that has
  // work never comes to its poll.
  void handle_time(core::instant now) {
    sockets_.handle_time(now.boot);
    if (now.boot < next_glance_) {
      return;
    }
    next_glance_ = now.boot + glance_every;
    if (auto wanted = core_.wants_writable(); !wanted.empty()) {
      glance_items_.clear();
      sockets_.watch(glance_items_, wanted);
      (void)zmq_poll(glance_items_.data(), int(glance_items_.size()), 0);
      sockets_.writable(glance_items_, 0, wanted);
      for (const auto& r : wanted) {
        core_.handle_writable(now, r);
      }
    }
  }

  // What the core doesn't know of: the filter's and the sockets' own timers.
  [[nodiscard]] time_point next_deadline(time_point now) const {
    return std::min(filter_ == nullptr ? core::never : filter_->next_deadline(), sockets_.next_deadline(now));
  }

  // Around a poll: adds this side's items, and tells the core what can be written afterwards.
  void watch(std::vector<zmq::pollitem_t>& items) {
    first_item_ = items.size();
    wanted_ = core_.wants_writable();
    sockets_.watch(items, wanted_);
  }
  void watched(core::instant now, const std::vector<zmq::pollitem_t>& items) {
    if (!wanted_.empty()) {
      sockets_.writable(items, first_item_, wanted_);
      for (const auto& r : wanted_) {
        core_.handle_writable(now, r);
      }
    }
  }

 private:
  static constexpr std::size_t frames_per_turn = 256;
  static constexpr std::size_t bytes_per_turn = 4U << 20U;
  static constexpr std::size_t scratch_kept = 1U << 20U;
  static constexpr duration glance_every = std::chrono::milliseconds(20);
  static constexpr bool retains = std::is_same_v<Core, core::consumer_core>;

  void feed_body(core::instant now, std::string_view view) {
    if constexpr (retains) {
      if (type_of(view) == std::uint8_t(core::frame_type::deliver)) {
        auto buffer = std::make_shared<frame_buffer>();
        if (view.size() < copied_below) {
          buffer->copy.assign(view);
          view = buffer->copy;
        } else {
          buffer->message.move(body_);
          view = {static_cast<const char*>(buffer->message.data()), buffer->message.size()};
        }
        return feed(now, from_, view, buffer);
      }
    }
    feed(now, from_, view, nullptr);
  }

  void feed(core::instant now, const core::route& from, std::string_view view,
            const std::shared_ptr<const void>& buffer) {
    if (auto bad = wire::decode(view, frame_)) {
      core_.handle_unreadable(now, from, bad->type, bad->session, std::move(bad->text));
      return;
    }
    if constexpr (retains) {
      core_.handle_frame(now, from, frame_, buffer);
    } else {
      core_.handle_frame(now, from, frame_);
    }
  }

  bool release(core::instant now) {
    bool told = false;
    while (auto f = filter_->poll(now.boot)) {
      if (f->way == filtered_frame::direction::out) {
        if (!sockets_.send(f->where, f->bytes)) {
          core_.handle_unsendable(now, f->where);
          told = true;
        }
        continue;
      }
      auto buffer = std::make_shared<frame_buffer>();
      buffer->copy = std::move(f->bytes);
      feed(now, f->where, buffer->copy, buffer);
      told = true;
    }
    return told;
  }

  Core& core_;
  socket_set& sockets_;
  link_filter* filter_;
  core::route from_;
  zmq::message_t body_;
  core::frame frame_;    // reused: decoding fills its vectors again
  std::string scratch_;  // reused: an encoded frame
  std::vector<core::route> unsendable_;
  std::vector<core::route> wanted_;
  std::size_t first_item_ = 0;
  std::vector<zmq::pollitem_t> glance_items_;
  time_point next_glance_{};
};

// The poll's timeout: rounded up, because waking early only to sleep again costs more than the rest of a millisecond.
[[nodiscard]] inline long poll_timeout_ms(time_point now, time_point deadline) {
  if (deadline == core::never) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(deadline, now) - now).count();
  return long(std::clamp<std::int64_t>(left, 1, 60'000));
}

}  // namespace onay::shell
