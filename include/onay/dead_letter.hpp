// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// A dead letter as its collector reads it.
#pragma once

#include <onay/delivery.hpp>

#include <optional>
#include <string>
#include <vector>

namespace onay {

/// A message that will not be tried again. Its own operation key, on the dead-letter link, is its message id, so a
/// collector that deduplicates by key stores each letter once.
struct dead_letter {
  message_id id;       ///< of the original message
  std::string origin;  ///< logical id of whoever buried it: a consumer, or the sender itself
  reason why = reason::none;
  retry_record record;          ///< with the original operation key
  std::vector<header> headers;  ///< the original ones
  std::string payload;  ///< the original bytes, unchanged; for `malformed` the whole document as it was received
};

/// Reads the letter that a collector's delivery carries. Nothing if the payload isn't one.
[[nodiscard]] std::optional<dead_letter> read_dead_letter(std::string_view payload);

}  // namespace onay
