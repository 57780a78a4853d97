// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The smallest user of the library: one message goes out, is processed and accepted.
#include <onay/onay.hpp>

#include <chrono>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  onay::sender sender({.endpoints = {onay::bind("tcp://127.0.0.1:*")}});
  onay::consumer consumer(
      {.endpoints = {onay::connect(sender.addresses().at(0))},
       .handler = onay::idempotence::idempotent,
       .dead_letters = onay::discard{}},
      [](const onay::delivery& d, onay::context&) { return onay::accept("got " + std::string(d.payload())); });
  consumer.start();
  const auto sent = sender.send({.key = onay::operation_key("operation-1"), .payload = "hello"});
  const auto* end = sent ? sent->wait_for(20s) : nullptr;
  if (end == nullptr || end->state != onay::final_state::accepted || end->result != "got hello") {
    std::cerr << "the message was not accepted\n";
    return 1;
  }
  const bool clean = consumer.stop(10s).clean && sender.close(10s).clean;
  std::cout << "onay " << ONAY_VERSION_MAJOR << '.' << ONAY_VERSION_MINOR << '.' << ONAY_VERSION_PATCH << ": accepted, "
            << (clean ? "clean" : "not clean") << '\n';
  return clean ? 0 : 1;
}
