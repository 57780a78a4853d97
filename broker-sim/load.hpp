// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The messages of a run: made up, or the lines of a file. Read one at a time; nothing but ids is held in memory.
#pragma once

#include "keys.hpp"

#include <onay/message.hpp>

#include <cstdint>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

namespace onay::sim {

struct load_options {
  std::optional<std::uint64_t> messages;  // absent: 10,000, or the whole input
  std::uint64_t payload = 256;            // bytes; not for input
  double rate = 0;                        // messages a second; 0: as fast as the sender takes them
  std::string input;                      // a file, one message a line; empty: made up
  std::string key_field;                  // of a line that is a JSON object; empty: the line's number is the key
};

// An input that can't be used; says which line and why.
class bad_input : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class load {
 public:
  // Reads the input once, for its keys. Throws `bad_input`.
  explicit load(load_options options);

  [[nodiscard]] const load_options& options() const { return options_; }
  [[nodiscard]] const key_catalog& keys() const { return keys_; }
  [[nodiscard]] std::uint64_t size() const { return keys_.messages(); }

  // The message at hand; may be asked for again when the sender had no room.
  [[nodiscard]] const message& current() const { return message_; }
  void advance();

 private:
  void write_key();
  void read_line();

  load_options options_;
  key_catalog keys_;
  std::uint64_t number_ = 0;  // of the message at hand, from 1
  std::ifstream file_;
  std::string key_;
  message message_;
};

}  // namespace onay::sim
