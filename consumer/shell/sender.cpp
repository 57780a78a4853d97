// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The application's side of a sender; its I/O thread is in sender_loop.cpp.
#include "shell/access.hpp"
#include "shell/clock.hpp"
#include "shell/options.hpp"
#include "shell/sender_impl.hpp"
#include "wire/codec.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace onay {

namespace {

// How long a close waits for the peers' answers to its BYE; after that they learn it from the lease.
constexpr duration part_longest = std::chrono::milliseconds(500);
// How long `status` waits for the I/O thread before it shows the last snapshot.
constexpr std::chrono::milliseconds status_patience(1000);
// So many settled messages give their room back at once, after their callbacks.
constexpr std::uint64_t left_together = 32;

core::sender_config config_of(const sender_options& o) {
  core::sender_config c;
  c.logical_id = o.logical_id;
  c.instance = shell::random_bits();
  c.sender_id = shell::random_bits();
  c.epoch = shell::random_bits();
  c.hash_seed = shell::random_bits();
  c.lease = o.lease;
  c.heartbeat = o.heartbeat;
  c.age_max = o.age_max.bounded() ? std::optional(o.age_max.value()) : std::nullopt;
  c.largest_message = shell::largest_message(o);
  c.parked_max = o.parked_max;
  c.buries_itself = o.dead_letters.has_value();
  return c;
}

}  // namespace

std::string_view to_string(send_error e) noexcept {
  switch (e) {
    case send_error::none:
      return "none";
    case send_error::would_block:
      return "would_block";
    case send_error::closed:
      return "closed";
    case send_error::missing_key:
      return "missing_key";
    case send_error::key_too_long:
      return "key_too_long";
    case send_error::too_large:
      return "too_large";
    case send_error::bad_deadline:
      return "bad_deadline";
  }
  return "?";
}

sender::impl::impl(sender_options options, zmq::context_t* context, shell::link_filter* filter)
    : options_(shell::validated(std::move(options), context == nullptr)),
      books_(std::make_shared<books>(options_)),
      commands_(books_->wake),
      callbacks_([b = books_](std::vector<called_back>& settled) {
        std::uint64_t messages = 0, bytes = 0;
        for (auto& c : settled) {
          b->callback_failures += c.receipt->run_callbacks();
          bytes += c.bytes;
          if (++messages == left_together || &c == &settled.back()) {
            b->gate.leave(std::exchange(messages, 0), std::exchange(bytes, 0));
          }
        }
      }),
      own_context_(context != nullptr ? nullptr
                                      : shell::make_context(options_.io_threads, options_.endpoints.size() + 1)),
      sockets_(context != nullptr ? *context : *own_context_, options_.endpoints,
               shell::largest_frame(shell::largest_message(options_))),
      core_(config_of(options_), entropy_),
      link_(core_, sockets_, filter),
      letters_(options_.dead_letters ? std::make_unique<shell::dead_letter_link>(
                                           context != nullptr ? *context : *own_context_, *options_.dead_letters,
                                           core_.config().logical_id, shell::largest_message(options_), nullptr)
                                     : nullptr),
      addresses_(sockets_.addresses()) {
  try {
    io_ = std::thread([this] { io_main(); });
  } catch (const std::system_error& e) {
    throw setup_error(std::string("cannot start a thread: ") + e.what());
  }
}

sender::impl::~impl() { close(duration::zero()); }

send_result sender::impl::send(const message& m, std::optional<duration> timeout) {
  const auto refuse = [](send_error e) { return send_result{{}, e}; };
  const auto key = m.key.bytes();
  if (key.empty()) {
    return refuse(send_error::missing_key);
  }
  if (key.size() > operation_key::size_max) {
    return refuse(send_error::key_too_long);
  }
  if (m.payload.size() > options_.payload_max.bytes) {
    return refuse(send_error::too_large);
  }
  if (m.deadline && *m.deadline <= duration::zero()) {
    return refuse(send_error::bad_deadline);
  }
  std::string headers;
  if (!m.headers.empty()) {
    headers = wire::encode_headers(m.headers);
    if (headers.size() > options_.headers_max.bytes) {
      return refuse(send_error::too_large);
    }
  }
  shell::send_gate::submission s{core_.make_message(key, headers, m.payload), m.deadline};
  auto state = std::make_shared<shell::receipt_state>();
  s.message->receipt = state;
  send_error error = send_error::none;
  if (timeout && *timeout <= duration::zero()) {
    error = books_->gate.try_enter(std::move(s));
  } else if (timeout) {
    error = books_->gate.enter(std::move(s), timeout);
  } else {
    error = books_->gate.enter(std::move(s), {});
  }
  if (error != send_error::none) {
    return refuse(error);
  }
  return {shell::receipt_state::handle_on(std::move(state)), send_error::none};
}

bool sender::impl::wait_idle(duration timeout) { return books_->gate.wait_idle(shell::steady_after(timeout)); }

close_report sender::impl::close(duration deadline) {
  const std::lock_guard lock(close_mutex_);
  if (closed_) {
    return *closed_;
  }
  const auto end = shell::steady_after(deadline);
  books_->gate.close();
  books_->gate.wait_idle(end);
  const auto left = std::chrono::duration_cast<duration>(end - std::chrono::steady_clock::now());
  const auto part_for = std::clamp(left, duration::zero(), part_longest);
  commands_.post([this, part_for](core::instant now) {
    core_.begin_close(now);
    part_until_ = now.boot + part_for;
  });
  if (io_.joinable()) {
    io_.join();
  }
  callbacks_.wait_idle(end);
  closed_ = close_report{unknown_ == 0, unknown_};
  return *closed_;
}

sender_status sender::impl::status() {
  auto answer = shell::ask<sender_status>(
      commands_, [this](core::instant) { return look(); }, status_patience);
  const std::lock_guard lock(final_mutex_);
  if (answer) {
    final_ = std::move(*answer);
  }
  return final_;
}

// --- the public class ---

sender::sender(sender_options options) : impl_(std::make_unique<impl>(std::move(options), nullptr, nullptr)) {}
sender::sender(zmq::context_t& context, sender_options options)
    : impl_(std::make_unique<impl>(std::move(options), &context, nullptr)) {}
sender::sender(std::unique_ptr<impl> i) : impl_(std::move(i)) {}
sender::~sender() = default;

send_result sender::send(const message& m) { return impl_->send(m, {}); }
send_result sender::send_for(const message& m, duration timeout) { return impl_->send(m, timeout); }
bool sender::wait_idle(duration timeout) { return impl_->wait_idle(timeout); }
close_report sender::close(duration deadline) { return impl_->close(deadline); }
sender_status sender::status() const { return impl_->status(); }
std::vector<std::string> sender::addresses() const { return impl_->addresses(); }

namespace shell {

std::unique_ptr<sender> access::make(sender_options options, link_filter& filter, zmq::context_t* context) {
  return std::unique_ptr<sender>(new sender(std::make_unique<sender::impl>(std::move(options), context, &filter)));
}

}  // namespace shell
}  // namespace onay
