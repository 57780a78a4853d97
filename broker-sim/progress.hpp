// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// One line on a terminal that says how far a run is; nothing where output is piped.
#pragma once

#include "upstream.hpp"

#include <onay/time.hpp>

#include <cstdint>

namespace onay::sim {

class progress {
 public:
  progress();
  // Removes the line.
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  // Redraws, five times a second at most.
  void show(const upstream& u, std::uint64_t messages, std::uint64_t deaths);

 private:
  bool terminal_;
  bool drawn_ = false;
  time_point last_{};
  std::uint64_t settled_before_ = 0;
};

// SIGINT and SIGTERM as a number: blocked in every thread that is started later, and asked for now and then. How a run
// can be interrupted without a handler that may do next to nothing.
class interruptions {
 public:
  interruptions();
  // How many came so far.
  [[nodiscard]] unsigned count();

 private:
  unsigned count_ = 0;
};

}  // namespace onay::sim
