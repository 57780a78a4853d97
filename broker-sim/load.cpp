// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "load.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace onay::sim {
namespace {

// Nothing but text and whole numbers: other values have more than one spelling.
std::string key_of_line(const std::string& line, const std::string& field, std::uint64_t number) {
  const auto document = nlohmann::json::parse(line, nullptr, false);
  if (!document.is_object()) throw bad_input(fmt::format("line {} isn't a JSON object", number));
  const auto at = document.find(field);
  if (at == document.end()) throw bad_input(fmt::format("line {} has no field \"{}\"", number, field));
  auto key = at->is_string() ? at->get<std::string>() : at->is_number_integer() ? at->dump() : std::string();
  if (key.empty() || key.size() > operation_key::size_max) {
    throw bad_input(fmt::format("line {}: \"{}\" must be a text of 1 to {} bytes or a whole number to serve as a key",
                                number, field, operation_key::size_max));
  }
  return key;
}

}  // namespace

load::load(load_options options) : options_(std::move(options)) {
  if (options_.input.empty()) {
    keys_ = key_catalog(options_.messages.value_or(10'000));
    message_.payload.assign(options_.payload, '.');
  } else {
    const auto open = [&] {
      file_ = std::ifstream(options_.input, std::ios::binary);
      if (!file_) throw bad_input("can't read " + options_.input);
    };
    open();
    const auto most = std::min<std::uint64_t>(options_.messages.value_or(std::numeric_limits<std::uint32_t>::max()),
                                              std::numeric_limits<std::uint32_t>::max());
    std::vector<std::uint64_t> ids;
    std::uint64_t lines = 0;
    for (std::string line; lines < most && std::getline(file_, line); ++lines) {
      if (!options_.key_field.empty()) {
        ids.push_back(hash_text(key_of_line(line, options_.key_field, lines + 1)));
      }
    }
    if (lines == 0) throw bad_input(options_.input + " has no lines");
    keys_ = options_.key_field.empty() ? key_catalog(lines) : key_catalog(ids);
    open();
  }
  advance();
}

void load::advance() {
  ++number_;
  if (!options_.input.empty()) {
    read_line();
  } else {
    write_key();
    // Told apart by more than their key: a payload delivered under another's key would be noticed as a conflict.
    std::memcpy(message_.payload.data(), key_.data(), std::min(message_.payload.size(), key_.size()));
  }
  message_.key = operation_key(key_);
}

// As fmt::format("m{:09}", number_) would, but at full speed that is a tenth of what sending a message costs.
void load::write_key() {
  if (number_ == 1 || number_ > 999'999'999) {
    key_ = fmt::format("m{:09}", number_);
    return;
  }
  auto digit = key_.rbegin();
  for (; *digit == '9'; ++digit) *digit = '0';
  ++*digit;
}

void load::read_line() {
  if (number_ > size()) return;
  if (!std::getline(file_, message_.payload)) throw bad_input(options_.input + " became shorter while it was read");
  key_ =
      options_.key_field.empty() ? std::to_string(number_) : key_of_line(message_.payload, options_.key_field, number_);
}

}  // namespace onay::sim
