// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Checks options before any thread, socket or file exists.
#pragma once

#include <onay/consumer.hpp>
#include <onay/sender.hpp>

#include <cstdint>

namespace onay::shell {

// What a message may take beside its payload: the longest key and the default limit of headers.
inline constexpr std::uint64_t message_overhead_max = 255 + (64U << 10U);
// What a dead letter may take beside the message it is made of: reason, retry record, key, origin.
inline constexpr std::uint64_t dead_letter_overhead_max = 128U << 10U;

// Returns the options with their defaults filled in (names, concurrency). Throws configuration_error.
// `own_context`: the endpoints can't be inproc, which only reaches sockets of the same context.
[[nodiscard]] sender_options validated(sender_options options, bool own_context);
[[nodiscard]] consumer_options validated(consumer_options options, bool own_context);

// key + headers + payload of the largest message that this end takes or sends.
[[nodiscard]] std::uint64_t largest_message(const sender_options& o);
[[nodiscard]] std::uint64_t largest_message(const consumer_options& o);

// The largest frame that a socket has to let in: a message of that size alone in its frame, or a peer's whole state.
// Far too much rather than a little too small: libzmq answers a larger frame by closing the connection for good.
[[nodiscard]] inline std::uint64_t largest_frame(std::uint64_t message) {
  return (message < (16U << 20U) ? (16U << 20U) : message) + (1U << 20U);
}

}  // namespace onay::shell
