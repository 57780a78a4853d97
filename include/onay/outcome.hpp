// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// How an attempt ended, why a message was dead-lettered, and the record that travels with it.
#pragma once

#include <onay/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onay {

/// What kind of failure an attempt met. The class decides whether the message may be tried again.
enum class error_class : std::uint8_t {
  none = 0,          ///< no attempt has failed
  transient = 1,     ///< refused, reset, timed out before the request left: retry with backoff
  overload = 2,      ///< 429/503, quota, pool exhausted: retry, Retry-After wins over backoff
  rolled_back = 3,   ///< deadlock victim, serialization failure: nothing happened, retry with backoff
  permanent = 4,     ///< validation, schema, constraint: dead-letter at once
  unauthorized = 5,  ///< authentication or authorisation refused: dead-letter at once
  uncertain = 6,     ///< it is unknown whether the effect happened: repeated only by an idempotent handler
};

/// Why a message was dead-lettered. A closed list, the same everywhere.
enum class reason : std::uint8_t {
  none = 0,
  attempts_exhausted = 1,    ///< the last allowed attempt failed, or killed its worker
  too_old = 2,               ///< past its age or deadline, or its next attempt could not start before that
  would_miss_deadline = 3,   ///< shed before it was tried
  rejected = 4,              ///< a permanent failure
  unauthorized = 5,          ///< a failure of class unauthorized
  outcome_unknown = 6,       ///< may have happened, and the handler isn't declared idempotent
  malformed = 7,             ///< the document can't be read; raw bytes kept
  too_large = 8,             ///< larger than the consumer takes
  missing_key = 9,           ///< empty operation key
  key_too_long = 10,         ///< operation key above 255 bytes
  key_conflict = 11,         ///< the operation key was used before with another payload
  unsupported_version = 12,  ///< a document version that the consumer doesn't speak; raw bytes kept
};

/// Where a message stands, as its retry record says it.
enum class final_state : std::uint8_t {
  pending = 0,        ///< not settled yet
  condemned = 1,      ///< rejected; its dead letter isn't confirmed yet
  accepted = 2,       ///< processed, recorded and acknowledged
  dead_lettered = 3,  ///< its dead letter is confirmed
  unknown = 4,        ///< the sender was closed before it heard
};

/// The names used in logs, JSON and tables ("attempts_exhausted"). Never null; "?" for a value outside the list.
[[nodiscard]] std::string_view to_string(error_class) noexcept;
[[nodiscard]] std::string_view to_string(reason) noexcept;
[[nodiscard]] std::string_view to_string(final_state) noexcept;

/// The history of one message's attempts. Kept by the sender, copied into its dead letter. Instants are UTC and for
/// people; they decide nothing.
struct retry_record {
  std::string operation_key;              ///< bytes, not necessarily text
  std::uint32_t attempts = 0;             ///< handler starts that were counted
  std::optional<utc_time> first_attempt;  ///< when the first counted attempt ended or was lost
  std::optional<utc_time> last_attempt;   ///< the same of the last one
  error_class last_error = error_class::none;
  std::string last_error_text;           ///< the handler's words, at most 1 KiB
  std::optional<utc_time> next_attempt;  ///< not before; absent when none will follow
  std::optional<utc_time> deadline;      ///< when the message's limit passes; absent without a limit
  final_state state = final_state::pending;
};

/// What a handler says about its attempt: `return onay::accept();`, `return onay::failure(...)`.
///
/// An `accept` is acknowledged to the sender only after the inbox has recorded the key. It may still be delivered again
/// (the acknowledgement can be lost); such a duplicate is answered with the first result and doesn't run the handler,
/// as long as this consumer's inbox has the record.
struct outcome {
  error_class cls = error_class::none;       ///< none: accepted
  std::string text = {};                     ///< result bytes when accepted, error text when failed (cut at 1 KiB)
  std::optional<duration> retry_after = {};  ///< failed only: not before; negative values are ignored
  [[nodiscard]] bool accepted() const { return cls == error_class::none; }
};

/// The attempt did what was asked.
/// @param result bytes for whoever waits for the receipt, at most `consumer_options::result_max` (64 KiB by default);
///        a larger one is cut off entirely, counted, and the message is accepted without a result.
[[nodiscard]] inline outcome accept(std::string result = {}) { return {error_class::none, std::move(result), {}}; }

/// The attempt failed.
/// @param cls decides what follows (see `error_class`); `none` is treated as `permanent`
/// @param text for people; goes into the retry record, never a payload or a secret
/// @param retry_after earliest next attempt, as a dependency asked for it; a floor below the jitter. One past the
///        message's limit dead-letters it now. Header text is turned into a duration by `parse_retry_after`.
[[nodiscard]] inline outcome failure(error_class cls, std::string text, std::optional<duration> retry_after = {}) {
  return {cls == error_class::none ? error_class::permanent : cls, std::move(text), retry_after};
}

/// Reads the value of an HTTP Retry-After header (RFC 9110, 10.2.3): whole seconds, or an HTTP date.
/// @param text surrounding blanks are ignored
/// @param now the wall clock to measure a date against; a date in the past is zero
/// @return nothing when the text is neither (also "-1", "1e3", ""): use your own backoff then; a number too large for a
///         duration becomes the largest one
[[nodiscard]] std::optional<duration> parse_retry_after(std::string_view text,
                                                        std::chrono::system_clock::time_point now);

/// The same for a number of seconds as clients hold it. NaN and negative values give nothing; huge ones the largest
/// duration.
[[nodiscard]] std::optional<duration> retry_after_seconds(double seconds);

}  // namespace onay
