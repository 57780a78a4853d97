// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// What a handler gets: the delivery, and the context of this attempt.
#pragma once

#include <onay/message.hpp>
#include <onay/outcome.hpp>

#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace onay {

namespace shell {
struct run;
}

/// One header as a view into its delivery.
struct header_view {
  std::string_view name;
  std::string_view value;
};

/// One handing-over of a message. Move-only.
///
/// Lifetime: everything it gives (`key`, `payload`, `headers`) is a view into the received frame and lives exactly as
/// long as this object does, wherever it is moved to. A synchronous handler's delivery lives until the handler returns.
///
/// Settling: a synchronous handler settles by returning an outcome. An asynchronous one owns the delivery and calls
/// `settle` once, from any thread. **Destroying an unsettled asynchronous delivery counts as a failed attempt of class
/// `uncertain`** ("dropped unsettled"), so that a forgotten delivery is neither lost nor repeated for ever.
///
/// Thread safety: one thread at a time.
class delivery {
 public:
  delivery(delivery&& other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
  delivery& operator=(delivery&& other) noexcept {
    std::swap(run_, other.run_);
    return *this;
  }
  ~delivery();

  [[nodiscard]] std::string_view key() const noexcept;  ///< the operation key, bytes
  [[nodiscard]] std::string_view payload() const noexcept;
  [[nodiscard]] std::vector<header_view> headers() const;  ///< in the sender's order
  /// The first header of that name; its value may be empty. Nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  [[nodiscard]] message_id id() const noexcept;

  /// Ends an asynchronous delivery; the object is empty afterwards. May be called from any thread, also after the
  /// consumer has been stopped or destroyed (it then has no effect and is counted by nobody).
  /// A duplicate may still arrive later; it is answered from the inbox.
  void settle(outcome result) &&;

 private:
  friend struct shell::run;
  explicit delivery(shell::run* r) : run_(r) {}
  shell::run* run_ = nullptr;
};

/// The circumstances of one attempt. A synchronous handler's context lives until the handler returns, an asynchronous
/// one is a value: copy what you need, or keep it with the delivery.
/// Thread safety: const members from any thread.
class context {
 public:
  [[nodiscard]] std::uint32_t attempt() const noexcept { return attempt_; }  ///< 1 for the first start
  [[nodiscard]] duration age() const noexcept;  ///< since `send`, the time in transit not included
  /// Until no further attempt could be useful: the smaller of the message's limit and this attempt's timeout.
  /// Never negative. Hand it to the calls that the handler makes.
  [[nodiscard]] duration time_left() const noexcept;
  [[nodiscard]] time_point deadline() const noexcept { return deadline_; }  ///< the instant when `time_left` is zero
  /// Fires when the attempt's timeout passes, when the lease is lost, and at the end of a drain. A handler that ignores
  /// it keeps its slot and its key; no second run starts beside it.
  [[nodiscard]] std::stop_token stop_token() const;
  [[nodiscard]] bool stop_requested() const noexcept;

 private:
  friend struct shell::run;
  context(std::shared_ptr<shell::run> r, std::uint32_t attempt, time_point born, time_point deadline)
      : run_(std::move(r)), attempt_(attempt), born_(born), deadline_(deadline) {}
  std::shared_ptr<shell::run> run_;
  std::uint32_t attempt_;
  time_point born_;
  time_point deadline_;
};

}  // namespace onay
