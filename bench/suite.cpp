// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// All benchmarks in one interleaved run: each round measures every figure and the raw-libzmq floor beside it, and what
// is reported is the median of the rounds and of the rounds' ratios. A single run is worth +-25 %. See README.md.
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using nlohmann::json;

std::string here;  // the folder of this program

json run(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("can't start: " + command);
  }
  std::string out;
  char buffer[4096];
  while (const auto n = fread(buffer, 1, sizeof buffer, pipe)) {
    out.append(buffer, n);
  }
  const int status = pclose(pipe);
  if (status != 0) {
    throw std::runtime_error("failed: " + command);
  }
  return json::parse(out);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown processor";
}

struct figure {
  std::string unit;
  std::vector<double> values, floors;  // a round each; no floors: none is meant
};

[[noreturn]] void usage(int code) {
  (code == 0 ? std::cout : std::cerr) << "usage: suite [--rounds N] [--messages N] [--json FILE]\n"
                                         "  --rounds N     rounds, 1 to 100 (default 5; fewer than 5 say little)\n"
                                         "  --messages N   messages of one throughput run (default 2000000)\n"
                                         "  --json FILE    write the figures there, '-' for the standard output\n";
  std::exit(code);
}

}  // namespace

int main(int argc, char** argv) try {
  long rounds = 5, messages = 2'000'000;
  std::string json_file;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help") {
      usage(0);
    } else if (i + 1 < argc && option == "--rounds") {
      rounds = std::atol(argv[++i]);
    } else if (i + 1 < argc && option == "--messages") {
      messages = std::atol(argv[++i]);
    } else if (i + 1 < argc && option == "--json") {
      json_file = argv[++i];
    } else {
      usage(2);
    }
  }
  if (rounds < 1 || rounds > 100 || messages < 1000) {
    usage(2);
  }
  here = argv[0];
  here = here.substr(0, here.rfind('/') + 1);
  const auto sim = here + "../broker-sim/broker-sim";
  const auto raw = here + "raw_zmq";

  std::map<std::string, figure> figures;
  for (long round = 1; round <= rounds; ++round) {
    std::fprintf(stderr, "round %ld of %ld\n", round, rounds);
    const auto push_pull = run(raw + " push-pull " + std::to_string(messages) + " 256")["per_second"].get<double>();
    const auto load = run(sim + " run --messages " + std::to_string(messages) +
                          " --payload 256 --workers 1 --concurrency 1 --no-effects --json -");
    if (!load["ok"].get<bool>() || load["accepted"].get<long>() != messages) {
      throw std::runtime_error("the throughput run's audit failed");
    }
    auto& throughput = figures["throughput_tcp_256"];
    throughput.unit = "messages/s";
    throughput.values.push_back(load["throughput_per_s"].get<double>());
    throughput.floors.push_back(push_pull);

    const auto req_rep = run(raw + " req-rep 5000 256");
    const auto trickle =
        run(sim + " run --messages 5000 --rate 1000 --payload 256 --workers 1 --concurrency 1 --no-effects --json -");
    for (const std::string p : {"p50", "p99"}) {
      auto& latency = figures["latency_" + p];
      latency.unit = "ms";
      latency.values.push_back(trickle["latency_ms"][p].get<double>());
      latency.floors.push_back(req_rep[p + "_ms"].get<double>());
    }
    const auto memory = run(here + "sender_memory 1000000 256");
    auto& bytes = figures["sender_bytes_per_message"];
    bytes.unit = "bytes beyond key and payload";
    bytes.values.push_back(memory["beyond_key_and_payload"].get<double>());
  }

  json result;
  utsname system{};
  uname(&system);
  result["machine"] = {{"processor", processor()},
                       {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
                       {"kernel", system.release},
                       {"tcp_congestion_control", first_line("/proc/sys/net/ipv4/tcp_congestion_control")}};
  result["rounds"] = rounds;
  result["messages"] = messages;
  std::printf("%s, %ld cores, Linux %s, tcp %s, %ld rounds\n", processor().c_str(), sysconf(_SC_NPROCESSORS_ONLN),
              system.release, first_line("/proc/sys/net/ipv4/tcp_congestion_control").c_str(), rounds);
  std::printf("%-28s %14s %14s %8s  %s\n", "benchmark", "median", "raw libzmq", "ratio", "unit");
  for (const auto& [name, f] : figures) {
    json entry = {{"name", name}, {"value", median(f.values)}, {"unit", f.unit}, {"values", f.values}};
    if (f.floors.empty()) {
      entry["floor"] = nullptr;
      entry["ratio"] = nullptr;
      std::printf("%-28s %14.3f %14s %8s  %s\n", name.c_str(), median(f.values), "", "", f.unit.c_str());
    } else {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < f.values.size(); ++i) {
        ratios.push_back(f.values[i] / f.floors[i]);
      }
      entry["floor"] = median(f.floors);
      entry["ratio"] = median(ratios);
      std::printf("%-28s %14.3f %14.3f %8.2f  %s\n", name.c_str(), median(f.values), median(f.floors), median(ratios),
                  f.unit.c_str());
    }
    result["benchmarks"].push_back(entry);
  }
  if (json_file == "-") {
    std::cout << result.dump(2) << "\n";
  } else if (!json_file.empty()) {
    std::ofstream(json_file) << result.dump(2) << "\n";
  }
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "suite: %s\n", e.what());
  return 1;
}
