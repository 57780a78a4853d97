// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Endpoint addresses: what is well formed, and which of them meet the same socket.
#pragma once

#include <onay/endpoint.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onay::shell {

struct address {
  enum class transport { tcp, ipc, inproc };
  transport how = transport::tcp;
  std::string host;        // tcp; "*" as it was given
  std::uint16_t port = 0;  // tcp; 0: any ("*")
  std::string name;        // ipc, inproc
};

// What is wrong with an endpoint's address, for people; empty if nothing is, and then `out` is filled.
[[nodiscard]] std::string read_address(const endpoint& e, address& out);

// Both may end at one socket. Compares what can be known without asking anybody: names of this machine are one host.
[[nodiscard]] bool same_place(const endpoint& a, const endpoint& b);

}  // namespace onay::shell
