// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// `broker-sim run` and `broker-sim upstream`: a whole pipeline on the loopback interface, or its first half.
#pragma once

#include "load.hpp"
#include "upstream.hpp"
#include "worker.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace onay::sim {

struct output_options {
  std::string json;  // a file, "-" for the standard output (and nothing else there), empty for the table alone
  bool explain = false;
};

struct run_options {
  load_options load;
  upstream_settings upstream;  // endpoints are set by the run
  worker_settings worker;
  output_options output;
  std::uint32_t workers = 2;
  std::uint64_t poison = 0;
  std::uint64_t seed = 1;
  std::optional<duration> kill_every, cut_every;
  std::optional<duration> collector_down;  // isn't there for so long
  bool effects = true;
  bool workers_bind = false;
  std::string directory;  // keeps the run's files; empty: a temporary one, removed at the end
};

struct upstream_options {
  load_options load;
  upstream_settings upstream;
  output_options output;
  std::uint64_t seed = 1;
  std::size_t peers = 1;  // waits for so many before it starts the clock
};

// Exit codes: 0 when the audit holds, 1 when not. Throw bad_input, configuration_error, setup_error, std::system_error.
int run_pipeline(const run_options& options);
int run_upstream(const upstream_options& options);

}  // namespace onay::sim
