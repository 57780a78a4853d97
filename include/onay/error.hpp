// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
/// @file
/// How a bad configuration or a failed set-up is refused.
#pragma once

#include <stdexcept>
#include <string>

namespace onay {

/// Thrown by constructors, before any thread, socket or file exists. `what()` names the field, the value, the allowed
/// range and what to do.
class configuration_error : public std::invalid_argument {
 public:
  configuration_error(std::string field, const std::string& value, const std::string& allowed, const std::string& hint);
  /// The option's name, as it is spelled in the code ("attempts_max").
  [[nodiscard]] const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

/// Thrown by constructors when the system refuses: an address in use, no descriptors left. `what()` names the endpoint
/// and says whether trying again makes sense.
class setup_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace onay
