// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "collector.hpp"

#include "letters.hpp"
#include "process.hpp"

#include <onay/consumer.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <memory>

namespace onay::sim {

int run_collector(const collector_options& options) {
  if (options.parent) die_with_parent(*options.parent);
  const auto letters = std::make_shared<const letter_writer>(options.file, options.sync);

  consumer_options c;
  c.endpoints = {bind(options.bind)};
  // Appending a line twice is a harmless repetition; readers tell letters apart by their id.
  c.handler = idempotence::idempotent;
  c.dead_letters = collect{};
  c.logical_id = options.logical_id;
  c.concurrency = 4;  // enough to have a write waiting for the disk and others on their way

  consumer collector(c, [letters](const delivery& d, context&) {
    letters->write(d);  // what it throws leaves the letter with its sender, who tries again
    return accept();
  });
  const stop_on_signals signals(collector, options.drain);
  collector.start();
  std::string text;
  for (const auto& address : collector.addresses()) text += address + "\n";
  if (options.addresses.empty()) {
    fmt::print("collecting dead letters on {}", text);
    std::fflush(stdout);
  } else {
    write_whole(options.addresses, text);
  }
  const auto report = collector.run();
  if (report.error.empty()) return 0;
  fmt::print(stderr, "broker-sim: collector: {}\n", report.error);
  return 1;
}

}  // namespace onay::sim
