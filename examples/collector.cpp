// SPDX-License-Identifier: Apache-2.0
#include <onay/consumer.hpp>
#include <onay/dead_letter.hpp>

#include <iostream>

// Prints dead letters. A real one stores them before it accepts: the senders forget a message when this returns.
int main() {
  onay::consumer collector({.endpoints = {onay::bind("tcp://127.0.0.1:5556")},
                            .handler = onay::idempotence::idempotent,
                            .dead_letters = onay::collect{}},
                           [](const onay::delivery& d, onay::context&) {
                             if (const auto letter = onay::read_dead_letter(d.payload())) {
                               std::cout << to_string(letter->id) << " " << to_string(letter->why) << " after "
                                         << letter->record.attempts << " attempts: " << letter->record.last_error_text
                                         << std::endl;
                             }
                             return onay::accept();
                           });
  onay::stop_on_signals stop(collector);
  return collector.run().clean ? 0 : 1;
}
