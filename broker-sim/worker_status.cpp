// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "worker_status.hpp"

#include "process.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace onay::sim {

status_file::status_file(const consumer& source, std::filesystem::path file) : source_(source), file_(std::move(file)) {
  if (!file_.empty()) thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

status_file::~status_file() = default;

void status_file::run(const std::stop_token& stop) {
  constexpr auto sample = std::chrono::milliseconds(50);
  constexpr unsigned samples_per_write = 20;
  for (unsigned n = 0; !stop.stop_requested(); ++n) {
    queued_max_ = std::max(queued_max_, source_.status().queued);
    if (n % samples_per_write == 0) write(nullptr);
    std::this_thread::sleep_for(sample);
  }
}

void status_file::finish(const stop_report& report) {
  if (file_.empty()) return;
  thread_.request_stop();
  thread_.join();
  write(&report);
}

void status_file::write(const stop_report* report) const {
  const auto s = source_.status();
  nlohmann::ordered_json j = {{"why_idle", to_string(s.why_idle)},
                              {"queued", s.queued},
                              {"queued_max", queued_max_},
                              {"running", s.running},
                              {"stuck", s.stuck},
                              {"burying", s.burying},
                              {"unconfirmed", s.unconfirmed},
                              {"held_bytes", s.held_bytes},
                              {"starts", s.starts},
                              {"accepted", s.accepted},
                              {"retried", s.retried},
                              {"released", s.released},
                              {"rejected", s.rejected},
                              {"buried", s.buried},
                              {"duplicates", s.duplicates},
                              {"lost_leases", s.lost_leases},
                              {"bad_frames", s.bad_frames},
                              {"malformed", s.malformed},
                              {"inbox_records", s.inbox_records},
                              {"inbox_pinned", s.inbox_pinned},
                              {"by_error_class", s.by_error_class},
                              {"refused", s.refused},
                              {"rss_max_mib", peak_rss_mib()}};
  if (report != nullptr) {
    j["stop"] = {
        {"clean", report->clean},     {"settled", report->settled},         {"released", report->released},
        {"running", report->running}, {"unconfirmed", report->unconfirmed}, {"dead_letters", report->dead_letters},
        {"error", report->error}};
  }
  write_whole(file_, j.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void status_file::add(const std::filesystem::path& file, worker_totals& totals) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return;
  const auto j = nlohmann::json::parse(in, nullptr, false);
  if (!j.is_object()) return;
  const auto sum = [&](const char* name, std::uint64_t& to) { to += j.value(name, std::uint64_t{0}); };
  sum("starts", totals.starts);
  sum("accepted", totals.accepted);
  sum("retried", totals.retried);
  sum("released", totals.released);
  sum("rejected", totals.rejected);
  sum("buried", totals.buried);
  sum("duplicates", totals.duplicates);
  sum("lost_leases", totals.lost_leases);
  sum("bad_frames", totals.bad_frames);
  const auto classes = j.value("by_error_class", std::vector<std::uint64_t>());
  for (std::size_t i = 0; i < std::min(classes.size(), totals.by_error_class.size()); ++i) {
    totals.by_error_class[i] += classes[i];
  }
  totals.queue_depth_max = std::max(totals.queue_depth_max, j.value("queued_max", std::uint64_t{0}));
  totals.rss_max_mib = std::max(totals.rss_max_mib, j.value("rss_max_mib", 0.0));
  if (j.contains("stop") && !j["stop"].value("clean", true)) ++totals.unclean_stops;
}

}  // namespace onay::sim
