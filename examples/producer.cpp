// SPDX-License-Identifier: Apache-2.0
#include <onay/sender.hpp>

#include <iostream>

int main() {
  using namespace std::chrono_literals;
  onay::sender orders({.endpoints = {onay::bind("tcp://127.0.0.1:5555")}});
  // The key belongs to the order, not to this try: made once, stored with it.
  const auto sent =
      orders.send({.key = onay::operation_key("order-4711"), .payload = "four red pens", .deadline = 20s});
  if (!sent) {
    std::cerr << "not sent: " << to_string(sent.error) << "\n";
    return 2;
  }
  const auto& end = sent->wait();
  std::cout << to_string(end.state) << ": " << end.result << std::endl;
  orders.close(5s);
  return end.state == onay::final_state::accepted ? 0 : 1;
}
