// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Options whose values have units, for CLI11.
#pragma once

#include "units.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace onay::sim {

enum class zero { allowed, refused };

// A duration with a unit. `fallback` is shown as the default; nothing there says that something else decides.
template <class Target>
CLI::Option* add_duration(CLI::App* app, const std::string& name, Target& target, const std::string& help,
                          const std::string& fallback, zero z = zero::refused) {
  auto* option = app->add_option_function<std::string>(
      name,
      [&target, name, z](const std::string& text) {
        const auto value = parse_duration(text);
        if (!value)
          throw CLI::ValidationError(name, "\"" + text + "\" isn't a duration with a unit, like 250ms, 5s or 1m");
        if (z == zero::refused && *value == duration::zero()) throw CLI::ValidationError(name, "must not be zero");
        target = *value;
      },
      help);
  option->type_name("DURATION")->default_str(fallback);
  return option;
}

template <class Target>
CLI::Option* add_size(CLI::App* app, const std::string& name, Target& target, const std::string& help,
                      const std::string& fallback) {
  auto* option = app->add_option_function<std::string>(
      name,
      [&target, name](const std::string& text) {
        const auto value = parse_size(text);
        if (!value)
          throw CLI::ValidationError(name, "\"" + text + "\" isn't a size in bytes, like 4096, 64KiB or 4MiB");
        target = *value;
      },
      help);
  option->type_name("SIZE")->default_str(fallback);
  return option;
}

// A whole number of a range. CLI11's own conversion takes "-1" for an unsigned type, and "1e3" for nothing at all.
template <class Target>
CLI::Option* add_count(CLI::App* app, const std::string& name, Target& target, const std::string& help,
                       std::uint64_t least, std::uint64_t most, const std::string& fallback) {
  auto* option = app->add_option_function<std::string>(
      name,
      [&target, name, least, most](const std::string& text) {
        const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        const auto value = digits ? parse_size(text) : std::nullopt;
        if (!value || *value < least || *value > most) {
          throw CLI::ValidationError(name, "\"" + text + "\" isn't a whole number from " + std::to_string(least) +
                                               " to " + std::to_string(most));
        }
        if constexpr (std::is_integral_v<Target>) {
          target = static_cast<Target>(*value);
        } else {
          target = static_cast<typename Target::value_type>(*value);
        }
      },
      help);
  option->type_name("N")->default_str(fallback);
  return option;
}

inline CLI::Option* add_probability(CLI::App* app, const std::string& name, double& target, const std::string& help) {
  return app->add_option(name, target, help)
      ->type_name("P")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->default_str("0");
}

}  // namespace onay::sim
