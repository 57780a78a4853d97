// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "report.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

namespace onay::sim {
namespace {

using json = nlohmann::ordered_json;

double rounded(double value, double steps = 1000) { return std::round(value * steps) / steps; }

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Without events the library's own counts have to do.
std::uint64_t starts(const run_report& r) { return r.effects_known ? r.audit.handler_starts : r.workers.starts; }

std::uint64_t starts_beyond_first(const run_report& r) {
  if (r.effects_known) return r.audit.starts_beyond_first;
  const auto first = r.sender.accepted + r.sender.dead_lettered;
  return starts(r) - std::min(starts(r), first);
}

double attempts_mean(const run_report& r) {
  return r.effects_known ? ratio(r.audit.handler_starts, r.audit.started_operations)
                         : ratio(starts(r), r.audit.messages);
}

json by_class(const run_report& r) {
  json classes = json::object();
  for (std::size_t i = 1; i < r.workers.by_error_class.size(); ++i) {
    classes[std::string(to_string(static_cast<error_class>(i)))] = r.workers.by_error_class[i];
  }
  return classes;
}

struct row {
  const char* name;
  std::string value;
  const char* meaning;
};

std::string count(std::uint64_t n) { return fmt::format("{}", n); }

void print_rows(std::ostream& out, const std::vector<row>& rows) {
  for (const auto& r : rows) {
    out << fmt::format("  {:<24}{:>14}{}{}\n", r.name, r.value, *r.meaning == '\0' ? "" : "  ", r.meaning);
  }
}

}  // namespace

double run_report::throughput() const {
  return elapsed_s > 0 ? static_cast<double>(audit.accepted + audit.dead_lettered) / elapsed_s : 0;
}

void print_table(const run_report& r, std::ostream& out) {
  const auto& a = r.audit;
  const auto unknown = [](bool known, std::string value) {
    return known ? std::move(value) : std::string("not checked");
  };
  out << "\nMessages\n";
  print_rows(out,
             {{"messages", count(a.messages), "sent by the upstream"},
              {"accepted", count(a.accepted), "processed, recorded and acknowledged"},
              {"dead lettered", count(a.dead_lettered), "given up, and the collector has confirmed their letters"}});
  if (a.refused > 0) print_rows(out, {{"refused", count(a.refused), "key sent before, with another payload"}});
  print_rows(
      out, {{"lost", count(a.lost), "no end, no effect, or no letter: must be 0"},
            {"duplicate effects", unknown(r.effects_known, count(a.duplicate_effects)), "an operation was done twice"},
            {"  of those excused", unknown(r.effects_known, count(a.excused_duplicates)),
             "its first worker was killed, or its link cut, around that time"}});
  out << "Attempts\n";
  if (r.has_workers) {
    print_rows(out,
               {{"handler starts", count(starts(r)), ""},
                {"extra traffic ratio", fmt::format("{:.4f}", ratio(starts_beyond_first(r), a.messages)),
                 "starts beyond the first, per message"},
                {"attempts mean", fmt::format("{:.3f}", attempts_mean(r)), "starts per message that was started"}});
  }
  print_rows(
      out,
      {{"first attempt successes", count(r.sender.first_attempt_successes), ""},
       {"successes after retry", count(r.sender.successes_after_retry), ""},
       {"redeliveries", count(r.sender.redeliveries), "deliveries beyond the first; resent frames not counted"},
       {"resent copies", count(r.sender.resent_copies), "deliveries that were sent again because a frame was lost"}});
  if (r.has_workers) {
    print_rows(out, {{"answered duplicates", count(r.workers.duplicates),
                      "redeliveries that the inbox answered, handler not run"},
                     {"waiting", unknown(r.effects_known, fmt::format("{:.1f} ms", a.waiting_ms)),
                      "between a failed attempt and the next one, mean"}});
  }
  if (r.has_workers || r.faults.frames > 0) out << "Faults\n";
  if (r.has_workers) {
    print_rows(out, {{"worker kills", count(r.worker_kills), "by us"},
                     {"worker crashes", count(r.worker_crashes), "by poison messages, or by a bug"},
                     {"link cuts", count(r.link_cuts), "all connections reset at once"}});
  }
  if (r.faults.frames > 0) {
    print_rows(out, {{"frames", count(r.faults.frames), "that the faults could hit"},
                     {"  dropped", count(r.faults.dropped), ""},
                     {"  duplicated", count(r.faults.duplicated), ""},
                     {"  reordered", count(r.faults.reordered), ""}});
  }
  out << "Speed and size\n";
  print_rows(out, {{"elapsed", fmt::format("{:.3f} s", r.elapsed_s), "first send to last receipt"},
                   {"throughput", fmt::format("{:.0f} /s", r.throughput()), ""},
                   {"latency p50", fmt::format("{:.3f} ms", r.latency.percentile(0.5) / 1000),
                    "send to receipt, accepted ones"},
                   {"latency p99", fmt::format("{:.3f} ms", r.latency.percentile(0.99) / 1000), ""},
                   {"latency p99.9", fmt::format("{:.3f} ms", r.latency.percentile(0.999) / 1000), ""},
                   {"outbox max", count(r.outbox_max), "messages unsettled at once"}});
  if (r.has_workers) {
    print_rows(out, {{"queue depth max", count(r.workers.queue_depth_max), "messages waiting in one worker, sampled"},
                     {"peak memory, worker", fmt::format("{:.1f} MiB", r.workers.rss_max_mib), ""}});
  }
  print_rows(out, {{"peak memory, upstream", fmt::format("{:.1f} MiB", r.rss_upstream_mib), ""}});

  constexpr std::size_t letters_shown = 12;
  std::size_t seen = 0;
  if (!r.letters.empty()) {
    for_each_letter(r.letters, [&](const letter& l) {
      if (seen == 0) out << "Dead letters\n";
      if (++seen > letters_shown) return;
      out << fmt::format("  {:<24}{:>14}  {}\n", l.operation_key, fmt::format("{} attempts", l.attempts), l.why);
    });
  }
  if (seen > letters_shown) out << fmt::format("  and {} more\n", seen - letters_shown);
  out << fmt::format("\n{} (seed {})\n", a.ok() ? "ok" : "NOT OK", r.seed);
  for (const auto& problem : a.problems) out << "  " << problem << "\n";
}

void print_explanation(const run_report& r, std::ostream& out) {
  const auto& a = r.audit;
  out << fmt::format(R"(
What this means
  The upstream sent {} messages and got a receipt for each: {} were processed, {} were given up after their allowed
  attempts, or at once where the handler said that trying again is useless, and lie with the collector. The audit
  doesn't take the library's word for it: each worker writes down every start and every effect, with one write(2) to a
  file, before it answers, and the collector writes down each letter before it accepts it. These files were compared
  with the receipts. {}.
)",
                     a.messages, a.accepted, a.dead_lettered,
                     a.lost == 0 ? "Nothing is missing" : fmt::format("{} MESSAGES ARE MISSING", a.lost));
  if (r.worker_kills + r.worker_crashes > 0) {
    out << fmt::format(R"(
  Workers died {} times: {} times they were killed from outside with SIGKILL, {} times a message killed the worker that
  touched it. What a dead worker held went to the others, or to its successor. A message that kills every worker is
  dead-lettered after its allowed attempts; the ones that were with it when a worker died are not.
)",
                       r.worker_kills + r.worker_crashes, r.worker_kills, r.worker_crashes);
  }
  const auto excuse = a.duplicate_effects == 0 ? std::string()
                                               : fmt::format(", {} of them explained by a killed worker or a cut link",
                                                             a.excused_duplicates);
  out << fmt::format(R"(
  {} effects happened twice{}.
  A worker records each key that it completed, so a redelivery to the same worker never runs the handler again ({} were
  answered from the record here). That record is in the worker's memory: when it is killed between an effect and the
  acknowledgement, another worker can't know. That is what at-least-once means, and why handlers should be idempotent,
  or keep record and effect in one transaction.
)",
                     a.duplicate_effects, excuse, r.workers.duplicates);
}

void print_json(const run_report& r, std::ostream& out) {
  const auto& a = r.audit;
  const auto if_known = [](bool known, auto value) { return known ? json(value) : json(nullptr); };
  const auto ms = [&](double share) { return rounded(r.latency.percentile(share) / 1000); };
  json j = {{"ok", a.ok()},
            {"problems", a.problems},
            {"seed", r.seed},
            {"messages", a.messages},
            {"accepted", a.accepted},
            {"dead_lettered", a.dead_lettered},
            {"refused", a.refused},
            {"lost", a.lost},
            {"duplicate_effects", if_known(r.effects_known, a.duplicate_effects)},
            {"excused_duplicates", if_known(r.effects_known, a.excused_duplicates)},
            {"excused_by_cut_alone", if_known(r.effects_known, a.excused_by_cut)},
            {"handler_starts", if_known(r.has_workers, starts(r))},
            {"redeliveries", r.sender.redeliveries},
            {"resent_copies", r.sender.resent_copies},
            {"extra_traffic_ratio", if_known(r.has_workers, rounded(ratio(starts_beyond_first(r), a.messages), 1e6))},
            {"first_attempt_successes", r.sender.first_attempt_successes},
            {"successes_after_retry", r.sender.successes_after_retry},
            {"attempts_mean", if_known(r.has_workers, rounded(attempts_mean(r), 1e6))},
            {"by_error_class", if_known(r.has_workers, by_class(r))},
            {"waiting_ms", if_known(r.effects_known, rounded(a.waiting_ms))},
            {"overlaps", if_known(r.effects_known, a.overlaps)},
            {"late_starts", if_known(r.effects_known, a.late_starts)},
            {"answered_duplicates", if_known(r.has_workers, r.workers.duplicates)},
            {"queue_depth_max", if_known(r.has_workers, r.workers.queue_depth_max)},
            {"outbox_max", r.outbox_max},
            {"worker_kills", if_known(r.has_workers, r.worker_kills)},
            {"worker_crashes", if_known(r.has_workers, r.worker_crashes)},
            {"unclean_stops", if_known(r.has_workers, r.workers.unclean_stops)},
            {"link_cuts", r.link_cuts},
            {"frames",
             {{"seen", r.faults.frames},
              {"dropped", r.faults.dropped},
              {"duplicated", r.faults.duplicated},
              {"reordered", r.faults.reordered}}},
            {"peers_lost", r.sender.peers_lost},
            {"late_accepts", r.sender.late_accepts},
            {"stale_verdicts", r.sender.stale_verdicts},
            {"bad_frames", r.sender.bad_frames},
            {"elapsed_s", rounded(r.elapsed_s)},
            {"throughput_per_s", rounded(r.throughput(), 10)},
            {"latency_ms", {{"p50", ms(0.5)}, {"p99", ms(0.99)}, {"p999", ms(0.999)}}},
            {"rss_max_mib",
             {{"upstream", rounded(r.rss_upstream_mib, 10)},
              {"worker", if_known(r.has_workers, rounded(r.workers.rss_max_mib, 10))}}}};
  // The letters are written past the rest, one by one: there may be millions.
  auto text = j.dump(2, ' ', false, json::error_handler_t::replace);
  text.erase(text.rfind('\n'));
  out << text << ",\n  \"dead_letters\": ";
  if (r.letters.empty()) {
    out << "null\n}\n";
    return;
  }
  out << "[";
  bool first = true;
  for_each_letter(r.letters, [&](const letter& l) {
    const json entry = {{"operation_key", l.operation_key}, {"reason", l.why}, {"attempts", l.attempts}};
    out << (first ? "\n    " : ",\n    ") << entry.dump(-1, ' ', false, json::error_handler_t::replace);
    first = false;
  });
  out << (first ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace onay::sim
