// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Operation keys, message ids, and where randomness comes from.
#include "shell/entropy.hpp"

#include <onay/message.hpp>

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace onay {

namespace shell {

void fill_random(void* out, std::size_t size) {
  auto* at = static_cast<unsigned char*>(out);
  while (size > 0) {
    const auto got = getrandom(at, size, 0);
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw std::system_error(errno, std::generic_category(), "onay: getrandom");
    }
    at += got;
    size -= std::size_t(got);
  }
}

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  fill_random(&bits, sizeof bits);
  return bits;
}

std::string random_name() {
  std::array<unsigned char, 16> bytes{};
  fill_random(bytes.data(), bytes.size());
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (auto b : bytes) {
    text += digits[b >> 4U];
    text += digits[b & 15U];
  }
  return text;
}

}  // namespace shell

operation_key operation_key::random() { return operation_key(shell::random_name()); }

std::string to_string(const message_id& id) {
  std::string text;
  for (auto part : {id.sender, id.epoch, id.number}) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), part, 16).ptr;
    text += text.empty() ? "" : "-";
    text.append(digits.data(), end);
  }
  return text;
}

}  // namespace onay
