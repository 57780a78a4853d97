// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The dead-letter collector's file: one JSON object a line, appended before the letter is accepted.
#pragma once

#include "keys.hpp"

#include <onay/dead_letter.hpp>
#include <onay/delivery.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace onay::sim {

// What the audit needs to know of a letter.
struct letter {
  std::string id;              // the original message's id
  std::string operation_key;   // as JSON can carry it: bytes that aren't UTF-8 are replaced
  std::uint64_t key_hash = 0;  // of the real bytes
  std::string why;
  std::uint32_t attempts = 0;
};

class letter_writer {
 public:
  // `sync`: each letter reaches the disk before it counts, so that it survives the machine too, not only the process.
  letter_writer(const std::filesystem::path& file, bool sync);
  ~letter_writer();
  letter_writer(const letter_writer&) = delete;
  letter_writer& operator=(const letter_writer&) = delete;

  // Thread-safe. Throws std::system_error.
  void write(const delivery& d) const;

 private:
  int fd_;
  bool sync_;
};

// False if the line isn't one of ours.
[[nodiscard]] bool read_letter(const std::string& line, letter& out);
// Calls `each` for every letter of the file, `bad` for lines that can't be read. A missing file has no letters.
void for_each_letter(const std::filesystem::path& file, const std::function<void(const letter&)>& each,
                     const std::function<void()>& bad = {});

}  // namespace onay::sim
