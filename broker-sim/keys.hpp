// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Which message a key belongs to, in eight bytes, for workers and audit alike.
#pragma once

#include "draws.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onay::sim {

// numbered: the key ends in the message's number ("m000000042", or a line's number): the id is that number, from 1.
// free: keys come from a field of the input: the id is the key's hash.
enum class key_style { numbered, free };

[[nodiscard]] inline std::optional<std::uint64_t> number_of(std::string_view key) {
  if (!key.empty() && key.front() == 'm') key.remove_prefix(1);
  if (key.empty() || key.size() > 18) return {};
  std::uint64_t number = 0;
  for (const char c : key) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

// A key that isn't a number gets the hash in any case: a reference worker must cope with whatever it is sent.
[[nodiscard]] inline std::uint64_t id_of(std::string_view key, key_style style) {
  if (style == key_style::numbered) {
    if (const auto number = number_of(key)) return *number;
  }
  return hash_text(key);
}

// The operations of a run: one for each distinct key, numbered from 0.
class key_catalog {
 public:
  key_catalog() = default;
  // Keys 1..count.
  explicit key_catalog(std::uint64_t count) : messages_(count), operations_(count) {}
  // The ids of all messages in their order; repetitions are the same operation.
  explicit key_catalog(const std::vector<std::uint64_t>& ids);

  [[nodiscard]] key_style style() const { return ids_.empty() ? key_style::numbered : key_style::free; }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  // The operation of a message; `message` counts from 0.
  [[nodiscard]] std::uint64_t operation_of(std::uint64_t message) const {
    return ids_.empty() ? message : operation_of_message_[message];
  }
  // Nothing for an id that was never sent.
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t id) const;
  [[nodiscard]] std::uint64_t id_of_operation(std::uint64_t operation) const {
    return ids_.empty() ? operation + 1 : ids_[operation];
  }

 private:
  std::uint64_t messages_ = 0;
  std::uint64_t operations_ = 0;
  std::vector<std::uint64_t> ids_;  // free keys only: sorted, the place is the operation
  std::vector<std::uint32_t> operation_of_message_;
};

}  // namespace onay::sim
