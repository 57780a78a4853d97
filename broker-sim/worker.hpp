// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The reference worker: a consumer with the synthetic handler.
#pragma once

#include "keys.hpp"
#include "synthetic.hpp"

#include <onay/consumer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onay::sim {

// What `run` hands down to its workers, and `worker` takes from its own command line.
struct worker_settings {
  synthetic_options handler;
  std::optional<std::uint32_t> concurrency;
  std::optional<limit<std::uint32_t>> attempts;  // absent: the library's default
  std::optional<duration> age_max;
  std::optional<duration> attempt_timeout;
  std::optional<std::uint32_t> credit;
  std::optional<std::uint64_t> credit_bytes;
  std::optional<duration> backoff_base, backoff_cap;
};

struct worker_options {
  worker_settings settings;
  std::vector<std::string> connect, bind;  // upstream endpoints
  std::string dead_letters;                // the collector's
  bool discard = false;                    // instead
  std::string logical_id;
  std::vector<std::string> poison_keys;
  key_style style = key_style::numbered;
  std::string events;                        // file; empty: none
  std::string status;                        // file; empty: none
  std::string addresses;                     // file that gets the bound addresses; empty: none
  std::optional<std::int64_t> beginning_us;  // of the run, boot clock
  std::optional<int> parent;                 // dies with it
  duration drain = std::chrono::seconds(30);
};

// Runs until SIGINT or SIGTERM; the exit code.
int run_worker(const worker_options& options);

}  // namespace onay::sim
