// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The dead-letter collector: keeps each letter in a file before it says that it has it.
#pragma once

#include <onay/time.hpp>

#include <optional>
#include <string>

namespace onay::sim {

struct collector_options {
  std::string bind = "tcp://127.0.0.1:*";
  std::string file;
  bool sync = true;  // each letter reaches the disk
  std::string logical_id = "collector";
  std::string addresses;      // file that gets the bound address; empty: it is printed
  std::optional<int> parent;  // dies with it
  duration drain = std::chrono::seconds(10);
};

// Runs until SIGINT or SIGTERM; the exit code.
int run_collector(const collector_options& options);

}  // namespace onay::sim
