// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "pipeline.hpp"

#include "arguments.hpp"
#include "effects.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace onay::sim {
namespace {

constexpr auto start_patience = std::chrono::seconds(20);
constexpr duration stop_patience = std::chrono::seconds(20);

std::string loopback(std::uint16_t port) { return fmt::format("tcp://127.0.0.1:{}", port); }

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

process start_collector(const run_directory& directory, const std::string& address) {
  // Without --sync: a run doesn't survive its machine anyway.
  return process({"collector", "--bind", address, "--file", directory.letters().string(), "--no-sync", "--addresses",
                  directory.collector_address().string(), "--parent", std::to_string(::getpid())});
}

}  // namespace

run_directory::run_directory(const std::string& wanted) : path_(wanted), temporary_(wanted.empty()) {
  if (temporary_) {
    auto text = (std::filesystem::temp_directory_path() / "broker-sim-XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr) throw std::system_error(errno, std::generic_category(), text);
    path_ = text;
    return;
  }
  std::filesystem::create_directories(path_);
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const auto name = entry.path().filename().string();
    for (const auto* ours : {"events.", "status.", "worker-", "collector.", "dead-letters."}) {
      if (name.rfind(ours, 0) == 0) std::filesystem::remove(entry.path());
    }
  }
}

run_directory::~run_directory() {
  std::error_code ignored;
  if (temporary_) std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path run_directory::worker_address(std::uint32_t worker) const {
  return path_ / fmt::format("worker-{}.address", worker + 1);
}
std::filesystem::path run_directory::events(std::uint32_t life) const { return path_ / fmt::format("events.{}", life); }
std::filesystem::path run_directory::status(std::uint32_t life) const {
  return path_ / fmt::format("status.{}.json", life);
}

pipeline::pipeline(const run_options& options, const run_directory& directory, std::vector<std::uint64_t> poison,
                   time_point beginning)
    : options_(options),
      directory_(directory),
      poison_(std::move(poison)),
      beginning_(beginning),
      collector_(start_collector(directory, "tcp://127.0.0.1:*")),
      worker_port_(options.workers) {
  const auto address = await_file(directory_.collector_address(), &collector_, start_patience);
  if (!address) throw std::runtime_error("the dead-letter collector didn't start");
  collector_address_ = first_line(*address);
  if (options_.collector_down) {
    // It has told its port; now nobody listens there.
    collector_.signal(SIGTERM);
    collector_away_ = collector_.wait_for(start_patience).has_value();
  }
}

pipeline::~pipeline() { cutter_ = {}; }

std::vector<std::string> pipeline::command(std::uint32_t worker, std::uint32_t life) const {
  auto words = to_arguments(options_.worker);
  words.insert(words.begin(), "worker");
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  add({"--logical-id", fmt::format("worker-{}", worker + 1), "--dead-letters", collector_address_});
  if (options_.workers_bind) {
    const auto port = worker_port_[worker].load();
    add({"--bind", port == 0 ? "tcp://127.0.0.1:*" : loopback(port)});
    add({"--addresses", directory_.worker_address(worker).string()});
  } else {
    add({"--connect", upstream_address_});
  }
  if (options_.effects) add({"--events", directory_.events(life).string()});
  add({"--status", directory_.status(life).string()});
  add({"--beginning", std::to_string(beginning_.time_since_epoch().count())});
  add({"--parent", std::to_string(::getpid())});
  if (!options_.load.key_field.empty()) add({"--free-keys"});
  for (const auto id : poison_) add({"--poison-id", std::to_string(id)});
  return words;
}

void pipeline::start_supervisor() {
  if (supervisor_) return;
  supervisor_ = std::make_unique<supervisor>(supervisor::settings{
      .workers = options_.workers,
      .kill_every = options_.kill_every,
      .poison = options_.poison > 0,
      .command = [this](std::uint32_t worker, std::uint32_t life) { return command(worker, life); }});
}

std::vector<endpoint> pipeline::upstream_endpoints() {
  if (!options_.workers_bind) return {bind("tcp://127.0.0.1:*")};
  start_supervisor();
  std::vector<endpoint> endpoints;
  for (std::uint32_t w = 0; w < options_.workers; ++w) {
    const auto address = await_file(directory_.worker_address(w), nullptr, start_patience);
    if (!address) throw std::runtime_error(fmt::format("worker-{} didn't start", w + 1));
    auto port = port_of(first_line(*address));
    worker_port_[w] = port;
    if (options_.cut_every) {
      relays_.push_back(std::make_unique<relay>(port));
      port = relays_.back()->port();
    }
    endpoints.push_back(connect(loopback(port)));
  }
  return endpoints;
}

void pipeline::start_workers(const std::string& upstream_address) {
  if (supervisor_) return;
  upstream_address_ = upstream_address;
  if (options_.cut_every) {
    relays_.push_back(std::make_unique<relay>(port_of(upstream_address)));
    upstream_address_ = loopback(relays_.back()->port());
  }
  start_supervisor();
}

void pipeline::start_faults() {
  if (collector_away_) collector_back_ = boot_clock::now() + *options_.collector_down;
  supervisor_->start_killing();
  if (options_.cut_every) cutter_ = std::jthread([this](const std::stop_token& stop) { cut_now_and_then(stop); });
}

void pipeline::stop_faults() {
  supervisor_->stop_killing();
  cutter_ = {};
}

void pipeline::cut_now_and_then(const std::stop_token& stop) {
  constexpr duration glance = std::chrono::milliseconds(10);
  auto next = boot_clock::now() + *options_.cut_every;
  while (!stop.stop_requested()) {
    const auto now = boot_clock::now();
    if (now < next) {
      std::this_thread::sleep_for(std::min<duration>(next - now, glance));
      continue;
    }
    next += *options_.cut_every;
    {
      const std::lock_guard lock(mutex_);
      cuts_.push_back(to_ticks(now - beginning_));
    }
    for (const auto& r : relays_) r->cut();
  }
}

void pipeline::stop() {
  stop_faults();
  supervisor_->stop(stop_patience);
  if (collector_away_) return;
  collector_.signal(SIGTERM);
  const auto end = collector_.wait_for(std::chrono::duration_cast<std::chrono::milliseconds>(stop_patience));
  if (!end) collector_.signal(SIGKILL);
  // Of SIGTERM it dies only when it has just been started and doesn't listen yet.
  collector_sound_ = end && ((end->code == 0 && end->signal == 0) || end->signal == SIGTERM);
}

std::uint64_t pipeline::link_cuts() const {
  const std::lock_guard lock(mutex_);
  return cuts_.size();
}

std::vector<std::uint32_t> pipeline::cuts() const {
  const std::lock_guard lock(mutex_);
  return cuts_;
}

std::string pipeline::look_after() {
  if (collector_away_ && collector_back_ && boot_clock::now() >= *collector_back_) {
    collector_ = start_collector(directory_, collector_address_);
    collector_away_ = false;
  }
  if (!collector_away_ && collector_.poll()) return "the dead-letter collector ended by itself";
  return supervisor_ ? supervisor_->failure() : std::string();
}

}  // namespace onay::sim
