// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/address.hpp"

#include <algorithm>
#include <charconv>

namespace onay::shell {

namespace {

constexpr std::size_t ipc_path_max = 107;  // sun_path with its terminator
constexpr std::size_t inproc_name_max = 255;

bool plain_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

std::string read_tcp(bool binds, std::string_view rest, address& out) {
  out.how = address::transport::tcp;
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) {
    return "tcp needs host:port";
  }
  const auto host = rest.substr(0, colon);
  const auto port = rest.substr(colon + 1);
  if (host == "*") {
    if (!binds) {
      return "only a bound endpoint may have the host \"*\"";
    }
  } else if (!plain_host(host)) {
    return "the host must be a name or an IPv4 address";
  }
  out.host = std::string(host);
  if (port == "*") {
    out.port = 0;
    return binds ? "" : "only a bound endpoint may have the port \"*\"";
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size() || out.port == 0) {
    return binds ? "the port must be 1 to 65535, or \"*\" for any" : "the port must be 1 to 65535";
  }
  return "";
}

bool this_machine(std::string_view host) {
  return host == "localhost" || host == "*" || host == "0.0.0.0" || host.starts_with("127.");
}

bool every_interface(std::string_view host) { return host == "*" || host == "0.0.0.0"; }

bool same_host(const address& a, const address& b) {
  // A wildcard takes what arrives at any name of this machine; two different loopback addresses don't meet.
  const auto canonical = [](const std::string& host) { return host == "localhost" ? std::string("127.0.0.1") : host; };
  return canonical(a.host) == canonical(b.host) || (every_interface(a.host) && this_machine(b.host)) ||
         (every_interface(b.host) && this_machine(a.host));
}

}  // namespace

std::string read_address(const endpoint& e, address& out) {
  const std::string_view text = e.address;
  if (text.empty()) {
    return "it is empty";
  }
  if (text.find('\0') != std::string_view::npos) {
    return "it contains a zero byte";
  }
  const auto mark = text.find("://");
  if (mark == std::string_view::npos) {
    return "the transport is missing";
  }
  const auto transport = text.substr(0, mark);
  const auto rest = text.substr(mark + 3);
  if (transport == "tcp") {
    return read_tcp(e.how == endpoint::mode::bind, rest, out);
  }
  const bool ipc = transport == "ipc";
  if (!ipc && transport != "inproc") {
    return "the transport must be tcp, ipc or inproc";
  }
  out.how = ipc ? address::transport::ipc : address::transport::inproc;
  out.name = std::string(rest);
  if (rest.empty()) {
    return ipc ? "ipc needs a path" : "inproc needs a name";
  }
  if (rest.size() > (ipc ? ipc_path_max : inproc_name_max)) {
    return ipc ? "the path is longer than 107 bytes" : "the name is longer than 255 bytes";
  }
  return "";
}

bool same_place(const endpoint& a, const endpoint& b) {
  address left;
  address right;
  if (!read_address(a, left).empty() || !read_address(b, right).empty() || left.how != right.how) {
    return false;
  }
  if (left.how == address::transport::tcp) {
    return left.port == right.port && left.port != 0 && same_host(left, right);
  }
  return left.name == right.name;
}

}  // namespace onay::shell
