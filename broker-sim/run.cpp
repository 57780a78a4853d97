// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "run.hpp"

#include "pipeline.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <system_error>
#include <thread>

namespace onay::sim {
namespace {

// Workers that aren't there by then are waited for by the messages.
constexpr duration connect_patience = std::chrono::seconds(10);
constexpr duration close_patience = std::chrono::seconds(5);

std::string in_words(upstream_end end, const upstream& u) {
  switch (end) {
    case upstream_end::abandoned:
      return "abandoned: interrupted twice";
    case upstream_end::stalled:
      return "stalled: no receipt came for too long";
    case upstream_end::failed:
      return u.failure();
    default:
      return {};
  }
}

void await_peers(const upstream& u, std::size_t peers, pipeline& p, interruptions& signals) {
  const auto until = boot_clock::now() + connect_patience;
  while (!u.has_peers(peers) && boot_clock::now() < until && signals.count() == 0 && p.look_after().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

run_report report_of(const upstream& u, std::uint64_t seed) {
  const auto& book = u.book();
  run_report r;
  r.seed = seed;
  r.sender = u.status();
  r.faults = u.faults();
  r.outbox_max = book.open_max();
  r.latency = book.latency();
  if (book.first_sent() && book.last_settled()) {
    r.elapsed_s = std::chrono::duration<double>(*book.last_settled() - *book.first_sent()).count();
  }
  return r;
}

void publish(const run_report& r, const output_options& output) {
  if (output.json == "-") {
    print_json(r, std::cout);
  } else {
    print_table(r, std::cout);
    if (output.explain) print_explanation(r, std::cout);
    if (!output.json.empty()) {
      std::ofstream file(output.json, std::ios::binary);
      print_json(r, file);
      if (!file.flush()) throw std::system_error(errno, std::generic_category(), output.json);
    }
  }
  std::cout.flush();
}

audit make_audit(const run_options& options, const load& messages, const upstream& u, const pipeline& p,
                 std::vector<std::uint64_t> poison) {
  audit_input in;
  in.keys = &messages.keys();
  for (const auto& l : p.workers().lives()) {
    death d;
    if (l.ended) d.at = to_ticks(*l.ended - u.beginning());
    if (l.how == life::end::killed) d.why = death::cause::killed;
    if (l.how == life::end::crashed) d.why = death::cause::crashed;
    in.deaths.push_back(d);
  }
  in.cuts = p.cuts();
  // A consumer may start for one lease after the link went, and its messages move two heartbeats later.
  in.cut_reach = to_ticks(options.upstream.lease.value_or(sender_options{}.lease) * 2);
  if (options.worker.age_max) {
    in.age_max_ms = static_cast<std::uint32_t>(*options.worker.age_max / std::chrono::milliseconds(1));
  }
  in.sent_at = &u.sent_at();
  if (const auto most = options.worker.attempts.value_or(consumer_options{}.attempts_max); most.bounded()) {
    in.attempts_max = most.value();
  }
  in.poison = std::move(poison);
  in.effects_known = options.effects;
  return audit(std::move(in));
}

}  // namespace

int run_pipeline(const run_options& options) {
  interruptions signals;
  load messages(options.load);
  std::vector<std::uint64_t> poison;
  for (const auto operation : choose_poison(options.seed, messages.keys().operations(), options.poison)) {
    poison.push_back(messages.keys().id_of_operation(operation));
  }
  const run_directory directory(options.directory);
  const auto beginning = boot_clock::now();

  pipeline around(options, directory, poison, beginning);
  auto settings = options.upstream;
  settings.endpoints = around.upstream_endpoints();
  settings.beginning = beginning;
  upstream broker(settings, messages);
  around.start_workers(broker.addresses().front());

  std::string trouble;
  upstream_end end = upstream_end::settled;
  {
    progress line;
    await_peers(broker, options.workers, around, signals);
    around.start_faults();
    end = broker.run([&](const upstream& u) -> unsigned {
      line.show(u, messages.size(), around.workers().kills() + around.workers().crashes());
      if (trouble = around.look_after(); !trouble.empty()) return 2;
      return signals.count();
    });
    if (trouble.empty()) trouble = in_words(end, broker);
    around.stop_faults();
  }
  // Workers first: their good-byes want an answer.
  around.stop();
  if (around.workers().refused_settings()) {
    fmt::print(stderr, "broker-sim: {}\n", trouble);
    return 2;
  }
  broker.close(end == upstream_end::settled ? close_patience : duration(1));

  auto judge = make_audit(options, messages, broker, around, poison);
  auto r = report_of(broker, options.seed);
  const auto lives = around.workers().lives();
  std::vector<std::filesystem::path> files;
  for (std::uint32_t n = 0; n < lives.size(); ++n) {
    if (options.effects) files.push_back(directory.events(n));
    status_file::add(directory.status(n), r.workers);
  }
  event_reader events(std::move(files));
  for (event e; events.next(e);) judge.add(e);
  for_each_letter(
      directory.letters(), [&](const letter& l) { judge.add(l); },
      [&] { trouble = "the collector's file has a line that can't be read"; });
  r.audit = judge.judge(broker.book());
  if (!trouble.empty()) r.audit.problems.push_back(trouble);
  if (events.torn() > 0) r.audit.problems.emplace_back("an effect file ends in the middle of a record");
  for (const auto& text : around.workers().unexplained()) r.audit.problems.push_back(text);
  if (!around.collector_sound()) r.audit.problems.emplace_back("the dead-letter collector didn't end in order");
  if (const auto n = around.workers().overdue(); n > 0) {
    r.audit.problems.push_back(fmt::format("{} workers didn't stop when they were told to", n));
  }
  r.worker_kills = around.workers().kills();
  r.worker_crashes = around.workers().crashes();
  r.link_cuts = around.link_cuts();
  r.effects_known = options.effects;
  r.letters = directory.letters();
  r.rss_upstream_mib = peak_rss_mib();
  publish(r, options.output);
  return r.audit.ok() ? 0 : 1;
}

int run_upstream(const upstream_options& options) {
  interruptions signals;
  load messages(options.load);
  auto settings = options.upstream;
  settings.beginning = boot_clock::now();
  upstream broker(settings, messages);
  for (const auto& address : broker.addresses()) fmt::print(stderr, "broker-sim: upstream at {}\n", address);
  // Here there is no hurry: whoever tries a worker starts it by hand.
  while (!broker.has_peers(options.peers) && signals.count() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  upstream_end end = upstream_end::settled;
  {
    progress line;
    end = broker.run([&](const upstream& u) -> unsigned {
      line.show(u, messages.size(), 0);
      return signals.count();
    });
  }
  broker.close(close_patience);

  audit_input in;
  in.keys = &messages.keys();
  in.effects_known = false;
  in.letters_known = false;
  auto r = report_of(broker, options.seed);
  r.audit = audit(std::move(in)).judge(broker.book());
  if (const auto trouble = in_words(end, broker); !trouble.empty()) r.audit.problems.push_back(trouble);
  r.has_workers = false;
  r.effects_known = false;
  r.rss_upstream_mib = peak_rss_mib();
  publish(r, options.output);
  return r.audit.ok() ? 0 : 1;
}

}  // namespace onay::sim
