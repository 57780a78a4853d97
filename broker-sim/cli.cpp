// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "cli.hpp"

#include "cli_values.hpp"
#include "collector.hpp"
#include "records.hpp"
#include "run.hpp"
#include "worker.hpp"

#include <onay/error.hpp>
#include <onay/version.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <limits>

namespace onay::sim {
namespace {

constexpr int usage_error = 2;
constexpr std::uint64_t count_max = std::numeric_limits<std::uint32_t>::max();

// Text of a library default, so that the help can't contradict the library.
std::string text_of(const limit<duration>& d) { return d.bounded() ? to_text(d.value()) : "no limit"; }

void add_load(CLI::App* app, load_options& o) {
  add_count(app, "--messages", o.messages, "Messages to send; of an input, the first so many", 1, count_max,
            "10000, or the whole input");
  add_size(app, "--payload", o.payload, "Bytes of each made-up message", std::to_string(o.payload));
  app->add_option("--rate", o.rate, "Messages a second; 0: as fast as they are taken")
      ->type_name("R")
      ->check(CLI::Range(0.0, 1e9).description(""))
      ->default_str("0");
  auto* input = app->add_option("--input", o.input, "Take the messages from a file, one a line")
                    ->type_name("FILE")
                    ->check(CLI::ExistingFile.description(""));
  app->add_option("--key-field", o.key_field,
                  "The lines are JSON objects, and this field has the key; otherwise the line's number is the key")
      ->type_name("NAME")
      ->needs(input);
}

void add_faults(CLI::App* app, fault_options& o) {
  const auto* group = "Faults, per frame, at the upstream's socket";
  add_probability(app, "--drop-settle", o.drop_settle, "Drop SETTLE frames that arrive")->group(group);
  add_probability(app, "--drop-deliver", o.drop_deliver, "Drop DELIVER frames that leave")->group(group);
  add_probability(app, "--drop-any", o.drop_any, "Drop any frame, both ways, greetings and heartbeats too")
      ->group(group);
  add_probability(app, "--duplicate", o.duplicate, "Send any frame twice to the same peer, both ways")->group(group);
  add_probability(app, "--reorder", o.reorder, "Swap any frame with the next one of its link, both ways")->group(group);
  add_duration(app, "--delay", o.delay, "Delay every frame, each way", "0s", zero::allowed)->group(group);
}

void add_sender(CLI::App* app, upstream_settings& o) {
  const sender_options defaults;
  add_duration(app, "--lease", o.lease, "How long a silent worker keeps its messages", to_text(defaults.lease));
  add_duration(app, "--heartbeat", o.heartbeat, "At most a quarter of the lease", "a fifth of the lease, 1s at most");
  add_count(app, "--unsettled", o.unsettled, "Messages that the upstream holds at most; it waits at the limit", 1,
            16'000'000, std::to_string(defaults.unsettled_max));
  add_size(app, "--unsettled-bytes", o.unsettled_bytes, "The same in bytes",
           size_to_text(defaults.unsettled_bytes_max.bytes));
  add_duration(app, "--stall-limit", o.stall_max, "Give up after so long without any receipt", to_text(o.stall_max));
}

void add_handler(CLI::App* app, worker_settings& o) {
  const auto* group = "Handler";
  add_duration(app, "--handler-time", o.handler.handler_time, "How long each attempt takes", "0s", zero::allowed)
      ->group(group);
  add_probability(app, "--fail", o.handler.fail, "An attempt fails (transient), drawn from seed, key and attempt")
      ->group(group);
  add_probability(app, "--reject", o.handler.reject,
                  "A message always fails for good (permanent), drawn from seed and key")
      ->group(group);
}

void add_consumer(CLI::App* app, worker_settings& o) {
  const auto* group = "Workers";
  const consumer_options defaults;
  add_count(app, "--concurrency", o.concurrency, "Handlers that one worker runs at once", 1, 4096,
            "number of processors")
      ->group(group);
  app->add_option_function<std::string>(
         "--attempts",
         [&o](const std::string& text) {
           const auto value = parse_size(text);
           const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
           if (text == "none") {
             o.attempts = no_limit;
           } else if (digits && value && *value >= 1 && *value <= 1'000'000'000) {
             o.attempts = static_cast<std::uint32_t>(*value);
           } else {
             throw CLI::ValidationError("--attempts",
                                        "\"" + text + "\" is neither a whole number from 1 to 1000000000 nor \"none\"");
           }
         },
         "Handler starts that a message may take, or \"none\" for no limit")
      ->type_name("N")
      ->default_str(std::to_string(defaults.attempts_max.value()))
      ->group(group);
  add_duration(app, "--attempt-timeout", o.attempt_timeout, "When an attempt is told to stop",
               to_text(defaults.attempt_timeout) + ", at most half of --max-age")
      ->group(group);
  add_count(app, "--credit", o.credit, "Messages that one worker holds at most", 1, 1'000'000,
            std::to_string(defaults.credit_max))
      ->group(group);
  add_size(app, "--credit-bytes", o.credit_bytes, "The same in bytes; at least 512KiB",
           size_to_text(defaults.credit_bytes_max.bytes))
      ->group(group);
  add_duration(app, "--backoff-base", o.backoff_base, "The n-th retry waits a random time up to base * 2^(n-1)",
               to_text(defaults.backoff.base))
      ->group(group);
  add_duration(app, "--backoff-cap", o.backoff_cap, "but up to this one at most", to_text(defaults.backoff.cap))
      ->group(group);
}

void add_output(CLI::App* app, output_options& o) {
  app->add_option("--json", o.json, "Write the audit as JSON; \"-\": to the standard output, and no table")
      ->type_name("FILE");
  app->add_flag("--explain", o.explain, "Say after the table what it means");
}

CLI::Option* add_seed(CLI::App* app, std::uint64_t& seed) {
  return add_count(app, "--seed", seed, "The same seed fails, rejects and poisons the same messages", 0,
                   std::numeric_limits<std::int64_t>::max(), std::to_string(seed));
}

void add_age(CLI::App* app, std::optional<duration>& age) {
  add_duration(app, "--max-age", age, "Older messages are dead-lettered and not started any more",
               text_of(consumer_options{}.age_max));
}

using command = std::function<int()>;

void define_run(CLI::App& app, command& chosen) {
  auto* sub =
      app.add_subcommand("run", "An upstream, worker processes and a dead-letter collector, faults, and an audit");
  const auto o = std::make_shared<run_options>();
  add_load(sub, o->load);
  add_handler(sub, o->worker);
  add_count(sub, "--poison", o->poison, "So many messages kill their worker at each attempt (SIGKILL)", 0, 1000, "0")
      ->group("Handler");
  add_count(sub, "--workers", o->workers, "Worker processes", 1, 256, std::to_string(o->workers))->group("Workers");
  sub->add_flag("--workers-bind", o->workers_bind, "The workers bind and the upstream connects")->group("Workers");
  add_consumer(sub, o->worker);
  add_age(sub, o->worker.age_max);
  add_sender(sub, o->upstream);
  add_faults(sub, o->upstream.faults);
  const auto* group = "Faults, of processes and connections";
  add_duration(sub, "--kill-every", o->kill_every,
               "Kill a worker (SIGKILL), one after the other, and restart it at once", "never")
      ->group(group);
  add_duration(sub, "--cut-every", o->cut_every, "Reset all connections between upstream and workers", "never")
      ->group(group);
  add_duration(sub, "--collector-down", o->collector_down, "The dead-letter collector isn't there for so long at first",
               "0s")
      ->group(group);
  sub->add_flag_callback(
      "--no-effects", [o] { o->effects = false; },
      "Write no effects, for measuring: lost and doubled effects are not looked for then");
  add_seed(sub, o->seed);
  sub->add_option("--directory", o->directory, "Keep the run's files (effects, letters, status) there")
      ->type_name("DIR");
  add_output(sub, o->output);
  sub->final_callback([o, &chosen] {
    o->worker.handler.seed = o->seed;
    o->upstream.faults.seed = o->seed;
    o->upstream.age_max = o->worker.age_max;
    chosen = [o] { return run_pipeline(*o); };
  });
}

void define_upstream(CLI::App& app, command& chosen) {
  auto* sub = app.add_subcommand("upstream", "Only the upstream, for trying a worker of your own against it");
  const auto o = std::make_shared<upstream_options>();
  const auto bound = std::make_shared<std::vector<std::string>>(),
             connected = std::make_shared<std::vector<std::string>>();
  const auto letters = std::make_shared<std::string>();
  sub->add_option("--bind", *bound, "Listen there, like tcp://127.0.0.1:5555; may be repeated")->type_name("ENDPOINT");
  sub->add_option("--connect", *connected, "Connect to a worker that listens there; may be repeated")
      ->type_name("ENDPOINT");
  sub->add_option("--dead-letters", *letters, "Collector for messages that no worker can bury")->type_name("ENDPOINT");
  add_count(sub, "--peers", o->peers, "Wait for so many workers before sending", 0, 1000, std::to_string(o->peers));
  add_load(sub, o->load);
  add_age(sub, o->upstream.age_max);
  add_sender(sub, o->upstream);
  add_faults(sub, o->upstream.faults);
  add_seed(sub, o->seed);
  add_output(sub, o->output);
  sub->final_callback([o, bound, connected, letters, &chosen] {
    for (const auto& address : *bound) o->upstream.endpoints.push_back(bind(address));
    for (const auto& address : *connected) o->upstream.endpoints.push_back(connect(address));
    if (o->upstream.endpoints.empty()) throw CLI::RequiredError("upstream needs --bind or --connect");
    if (!letters->empty()) o->upstream.dead_letters = connect(*letters);
    o->upstream.faults.seed = o->seed;
    chosen = [o] { return run_upstream(*o); };
  });
}

void define_worker(CLI::App& app, command& chosen) {
  auto* sub = app.add_subcommand("worker", "The reference worker, with a handler that sleeps, fails and dies as told");
  const auto o = std::make_shared<worker_options>();
  sub->add_option("--connect", o->connect, "Where an upstream listens, like tcp://127.0.0.1:5555; may be repeated")
      ->type_name("ENDPOINT");
  sub->add_option("--bind", o->bind, "Listen for upstreams there; may be repeated")->type_name("ENDPOINT");
  auto* letters =
      sub->add_option("--dead-letters", o->dead_letters, "Where the collector listens")->type_name("ENDPOINT");
  sub->add_flag("--discard", o->discard, "Drop what would be dead-lettered")->excludes(letters);
  sub->add_option("--logical-id", o->logical_id, "Name; a restarted worker should keep it")
      ->type_name("NAME")
      ->default_str("random");
  add_handler(sub, o->settings);
  sub->add_option("--poison-key", o->poison_keys, "A message with this key kills the worker; may be repeated")
      ->type_name("KEY")
      ->group("Handler");
  add_consumer(sub, o->settings);
  add_age(sub, o->settings.age_max);
  add_seed(sub, o->settings.handler.seed);
  add_duration(sub, "--drain", o->drain, "How long a stop (SIGTERM, Ctrl-C) may take", to_text(o->drain));
  sub->add_option("--events", o->events, "Write each handler start and effect there")->type_name("FILE");
  sub->add_option("--status", o->status, "Write what the library says about itself there, each second")
      ->type_name("FILE");
  sub->add_option("--addresses", o->addresses, "Write the bound addresses there")->type_name("FILE");
  // What only `run` says.
  sub->add_option("--beginning", o->beginning_us)->group("");
  sub->add_option("--parent", o->parent)->group("");
  sub->add_option("--poison-id", o->settings.handler.poison)->group("");
  const auto free_keys = std::make_shared<bool>(false);
  sub->add_flag("--free-keys", *free_keys)->group("");
  sub->final_callback([o, free_keys, &chosen] {
    if (o->connect.empty() && o->bind.empty()) throw CLI::RequiredError("worker needs --connect or --bind");
    if (o->dead_letters.empty() && !o->discard) {
      throw CLI::RequiredError("worker needs --dead-letters ENDPOINT, or --discard");
    }
    o->style = *free_keys ? key_style::free : key_style::numbered;
    chosen = [o] { return run_worker(*o); };
  });
}

void define_collector(CLI::App& app, command& chosen) {
  auto* sub =
      app.add_subcommand("collector", "A dead-letter collector that keeps letters in a file, one JSON object a line");
  const auto o = std::make_shared<collector_options>();
  sub->add_option("--bind", o->bind, "Listen for workers there")->type_name("ENDPOINT")->capture_default_str();
  sub->add_option("--file", o->file, "Append the letters there")->type_name("FILE")->required();
  sub->add_flag_callback(
      "--no-sync", [o] { o->sync = false; }, "Confirm a letter before it is on the disk");
  sub->add_option("--logical-id", o->logical_id, "Name")->type_name("NAME")->capture_default_str();
  sub->add_option("--addresses", o->addresses, "Write the bound address there instead of printing it")
      ->type_name("FILE");
  sub->add_option("--parent", o->parent)->group("");
  sub->final_callback([o, &chosen] { chosen = [o] { return run_collector(*o); }; });
}

void define_records(CLI::App& app, command& chosen) {
  auto* sub = app.add_subcommand("records", "Prints made-up order records, one JSON object a line, for run --input");
  const auto count = std::make_shared<std::uint64_t>(20'000), seed = std::make_shared<std::uint64_t>(1);
  add_count(sub, "--count", *count, "Records", 1, count_max, std::to_string(*count));
  add_seed(sub, *seed)->description("The same seed gives the same records");
  sub->final_callback([count, seed, &chosen] {
    chosen = [count, seed] {
      write_records(std::cout, *count, *seed);
      return std::cout.flush() ? 0 : 1;
    };
  });
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app(
      "Sends messages through onay, breaks what can break on the way, and checks that nothing was lost or done "
      "twice.\nExit code: 0 if all of it holds, 1 if not, 2 for a wrong command line.",
      "broker-sim");
  app.set_version_flag("--version",
                       fmt::format("{}.{}.{}", ONAY_VERSION_MAJOR, ONAY_VERSION_MINOR, ONAY_VERSION_PATCH));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  command chosen;
  define_run(app, chosen);
  define_upstream(app, chosen);
  define_worker(app, chosen);
  define_collector(app, chosen);
  define_records(app, chosen);
  try {
    app.parse(argc, argv);
    return chosen();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : usage_error;
  } catch (const configuration_error& e) {
    fmt::print(stderr, "broker-sim: {}\n", e.what());
    return usage_error;
  } catch (const bad_input& e) {
    fmt::print(stderr, "broker-sim: {}\n", e.what());
    return usage_error;
  } catch (const std::exception& e) {
    fmt::print(stderr, "broker-sim: {}\n", e.what());
    return 1;
  }
}

}  // namespace onay::sim
