// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#pragma once

#include "support/virtual_net.hpp"

#include <memory>
#include <vector>

namespace onay::test {

// A peer of the test's own: sends what it likes, records what comes.
struct raw_peer : port {
  void handle_frame(const core::route&, const core::frame& f, const std::shared_ptr<const void>& b) override {
    seen.push_back(f);
    buffers.push_back(b);
  }
  void handle_unreadable(const core::route&, const wire::unreadable&) override {}
  void handle_unsendable(const core::route&) override {}
  void handle_writable(const core::route&) override { connected = true; }
  template <class T>
  const T* last() const {
    for (auto it = seen.rbegin(); it != seen.rend(); ++it) {
      if (const auto* f = std::get_if<T>(&*it)) {
        return f;
      }
    }
    return nullptr;
  }
  std::vector<core::frame> seen;
  std::vector<std::shared_ptr<const void>> buffers;
  bool connected = false;
};

inline core::hello sender_hello(std::uint64_t instance = 9) {
  core::hello h;
  h.self.logical_id = "raw";
  h.self.instance = instance;
  h.self.largest_message = 1000;
  h.self.part = core::sender_greeting{5, 1, 1, std::chrono::milliseconds(400), std::chrono::seconds(2)};
  h.connection = 1;
  return h;
}

}  // namespace onay::test
