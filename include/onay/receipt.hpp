// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// What became of a sent message.
#pragma once

#include <onay/message.hpp>
#include <onay/outcome.hpp>

#include <functional>
#include <memory>
#include <string>

namespace onay {

namespace shell {
struct receipt_state;
}

/// How a message ended, as its receipt tells it.
struct settled_message {
  /// `accepted`, `dead_lettered`, or `unknown` (the sender was closed before it heard; the message may or may not have
  /// been processed). `pending` marks a refusal: the key of an unsettled message was sent again with another payload,
  /// and nothing was sent; `why` is then `key_conflict`.
  final_state state = final_state::unknown;
  std::string result;         ///< accepted: what the handler returned, of its first successful run
  reason why = reason::none;  ///< dead-lettered or refused: the reason
  retry_record record;        ///< dead-lettered: the whole record
  [[nodiscard]] bool refused() const { return state == final_state::pending; }
};

/// A handle on one sent message's end. Copies refer to the same message. Outlives its sender: when that is destroyed,
/// what is still open ends as `unknown`. Dropping a receipt changes nothing for the message.
///
/// Thread safety: all members may be called from any thread.
class receipt {
 public:
  receipt() = default;  ///< refers to nothing; `valid()` is false and nothing else may be called

  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
  /// The outcome if it is known already, otherwise null. Never waits. Lives as long as any copy of this receipt.
  [[nodiscard]] const settled_message* poll() const noexcept;
  /// Waits for the outcome. Ends at the latest when the sender is closed. Not from a callback of the same sender: that
  /// thread delivers the outcomes.
  const settled_message& wait() const;
  /// Waits at most `timeout` (zero polls). Null if it isn't known by then.
  [[nodiscard]] const settled_message* wait_for(duration timeout) const;
  /// Calls `callback` once with the outcome: on the sender's callback thread, or at once in this thread if the outcome
  /// is known already. Several callbacks run in the order of their registration. An exception from one is
  /// caught, and counted (`sender_status::callback_failures`) if it was on the callback thread. Until its callbacks
  /// have run, a message counts as unsettled, so slow callbacks slow `send` down.
  void on_settled(std::function<void(const settled_message&)> callback) const;

 private:
  friend struct shell::receipt_state;
  explicit receipt(std::shared_ptr<shell::receipt_state> state) : state_(std::move(state)) {}
  std::shared_ptr<shell::receipt_state> state_;
};

}  // namespace onay
