// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// Where a sender or a consumer meets its peers.
#pragma once

#include <onay/time.hpp>

#include <string>

namespace onay {

/// One ZeroMQ endpoint and which way round it is opened. Either role may bind; a bound endpoint takes any number of
/// peers, a connecting one talks to exactly one.
struct endpoint {
  enum class mode { bind, connect };
  mode how = mode::connect;
  std::string address = {};  ///< "tcp://127.0.0.1:5555", "ipc:///run/x.sock", "inproc://name"; tcp may bind port "*"
  friend bool operator==(const endpoint&, const endpoint&) = default;
};

[[nodiscard]] inline endpoint bind(std::string address) { return {endpoint::mode::bind, std::move(address)}; }
[[nodiscard]] inline endpoint connect(std::string address) { return {endpoint::mode::connect, std::move(address)}; }

}  // namespace onay
