// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What an unsettled message costs its sender beside its own key and payload, receipts held. Prints one JSON object.
//
//   sender_memory [MESSAGES] [PAYLOAD]
#include <onay/sender.hpp>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long total = 0, resident = 0;
  statm >> total >> resident;
  return double(resident) * double(sysconf(_SC_PAGESIZE));
}

}  // namespace

int main(int argc, char** argv) {
  const auto messages = std::uint32_t(argc > 1 ? std::atol(argv[1]) : 1'000'000);
  const auto payload = std::size_t(argc > 2 ? std::atol(argv[2]) : 256);
  onay::sender_options options;
  options.endpoints = {onay::bind("tcp://127.0.0.1:*")};
  options.unsettled_max = messages + 1;
  options.unsettled_bytes_max = {std::uint64_t(messages) * (payload + 64) + 1};
  onay::sender sender(options);
  std::vector<onay::receipt> receipts(messages);
  const auto send = [&](std::uint32_t i) {
    char key[32];
    std::snprintf(key, sizeof key, "%016u", i);
    auto sent = sender.try_send(
        {.key = onay::operation_key(key), .payload = std::string(payload, 'x'), .headers = {}, .deadline = {}});
    if (!sent) {
      std::fprintf(stderr, "sender_memory: send %u failed\n", i);
      std::exit(1);
    }
    receipts[i] = sent.ticket;
  };
  send(0);
  const auto before = resident_bytes();
  for (std::uint32_t i = 1; i < messages; ++i) {
    send(i);
  }
  while (sender.status().unsettled < messages) {
    usleep(1000);  // the last ones are still on their way to the ledger
  }
  const auto per_message = (resident_bytes() - before) / double(messages - 1);
  std::printf("{\"bytes_per_message\": %.1f, \"beyond_key_and_payload\": %.1f}\n", per_message,
              per_message - 16 - double(payload));
  return 0;
}
