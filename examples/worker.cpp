// SPDX-License-Identifier: Apache-2.0
#include <onay/consumer.hpp>

#include <iostream>

int main() {
  onay::consumer worker({.endpoints = {onay::connect("tcp://127.0.0.1:5555")},
                         .handler = onay::idempotence::idempotent,
                         .dead_letters = onay::dead_letter_to{onay::connect("tcp://127.0.0.1:5556")}},
                        [](const onay::delivery& order, onay::context& attempt) {
                          if (order.payload().empty()) {
                            return onay::failure(onay::error_class::permanent, "empty order");
                          }
                          if (attempt.stop_requested()) {
                            return onay::failure(onay::error_class::transient, "told to stop");
                          }
                          std::cout << "shipping " << order.payload() << std::endl;
                          return onay::accept("shipped");
                        });
  onay::stop_on_signals stop(worker);  // SIGINT and SIGTERM drain
  const auto left = worker.run();
  std::cout << (left.clean ? "clean" : "not clean") << std::endl;
  return left.clean ? 0 : 1;
}
