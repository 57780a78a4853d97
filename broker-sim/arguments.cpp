// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "arguments.hpp"

#include "units.hpp"

#include <fmt/format.h>

namespace onay::sim {

std::vector<std::string> to_arguments(const worker_settings& s) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, std::string value) {
    words.emplace_back(name);
    words.push_back(std::move(value));
  };
  const auto add_number = [&](const char* name, const auto& value) {
    if (value) add(name, fmt::format("{}", *value));
  };
  const auto add_duration = [&](const char* name, const std::optional<duration>& value) {
    if (value) add(name, to_text(*value));
  };
  add("--seed", fmt::format("{}", s.handler.seed));
  // The shortest text that reads back as the same number.
  if (s.handler.fail > 0) add("--fail", fmt::format("{}", s.handler.fail));
  if (s.handler.reject > 0) add("--reject", fmt::format("{}", s.handler.reject));
  if (s.handler.handler_time > duration::zero()) add("--handler-time", to_text(s.handler.handler_time));
  add_number("--concurrency", s.concurrency);
  if (s.attempts) add("--attempts", s.attempts->bounded() ? fmt::format("{}", s.attempts->value()) : "none");
  add_duration("--max-age", s.age_max);
  add_duration("--attempt-timeout", s.attempt_timeout);
  add_number("--credit", s.credit);
  add_number("--credit-bytes", s.credit_bytes);
  add_duration("--backoff-base", s.backoff_base);
  add_duration("--backoff-cap", s.backoff_cap);
  return words;
}

}  // namespace onay::sim
