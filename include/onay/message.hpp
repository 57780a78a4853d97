// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// What an application sends: an operation key, headers and a payload.
#pragma once

#include <onay/time.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onay {

/// Names one *operation*, whatever happens to the messages that carry it: the idempotency key.
///
/// Make it **once per operation, outside any retry loop**, and store it beside the business object; a key made anew for
/// each try defeats deduplication. Keys are bytes, compared as bytes: 1 to 255 of them.
class operation_key {
 public:
  static constexpr std::size_t size_max = 255;

  operation_key() = default;
  /// Takes any bytes. An empty or too long key is refused by `send`, not here.
  explicit operation_key(std::string bytes) : bytes_(std::move(bytes)) {}

  /// 128 random bits as 32 hexadecimal digits, from the system's entropy source. Call it **once per operation, outside
  /// any retry loop**. Thread-safe. @throws std::system_error if the system has no entropy to give.
  [[nodiscard]] static operation_key random();

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  friend bool operator==(const operation_key&, const operation_key&) = default;

 private:
  std::string bytes_;
};

/// One header. Names and values are bytes; order and repetitions are kept.
struct header {
  std::string name = {};
  std::string value = {};
  friend bool operator==(const header&, const header&) = default;
};

/// What `sender::send` takes.
struct message {
  operation_key key = {};            ///< required, 1 to 255 bytes
  std::string payload = {};          ///< may be empty; at most `sender_options::payload_max` (8 MiB by default)
  std::vector<header> headers = {};  ///< at most 64 KiB with their encoding
  /// No attempt starts later than this after `send`. The message's limit is the smaller of it and
  /// `sender_options::age_max`; past it the message is dead-lettered `too_old`. Must be positive.
  std::optional<duration> deadline = {};
};

/// Names one *message* across sessions and restarts; several messages may carry the same operation key. It is also the
/// identity of its dead letter.
struct message_id {
  std::uint64_t sender = 0;  ///< the outbox that numbered it
  std::uint64_t epoch = 0;   ///< that outbox's life; a lost or recreated outbox takes a new one
  std::uint64_t number = 0;  ///< rising from 1 within the epoch, in the order of `send`
  friend auto operator<=>(const message_id&, const message_id&) = default;
};

/// "sender-epoch-number" in hexadecimal, for logs and tables.
[[nodiscard]] std::string to_string(const message_id&);

}  // namespace onay
