// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Both real cores and the codec over a virtual net, in one thread on a virtual clock: senders, consumers with simulated
// handlers, a dead-letter collector. Tests say what happens (send, drop, cut, kill, restart) and step through time.
#pragma once

#include "core/consumer_core.hpp"
#include "core/sender_core.hpp"
#include "support/virtual_net.hpp"

#include <onay/dead_letter.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace onay::test {

using namespace std::chrono_literals;

struct seeded_entropy : core::entropy {
  explicit seeded_entropy(std::uint64_t seed) : generator(seed) {}
  std::uint64_t next() override { return generator() | 1U; }
  std::mt19937_64 generator;
};

// What one run of a handler does.
struct run_plan {
  duration takes{};
  onay::outcome result = onay::accept();
  bool obeys_stop = true;  // ends as soon as its stop token fires, as `uncertain`
  bool kills = false;      // the process dies at the start of this run
};

struct start_seen {
  std::string key;
  std::uint32_t attempt;
  time_point at;
  duration age;
  duration time_left;
  std::string consumer;
};

// Effects and starts, as the handlers see them: independent of what the cores believe.
struct effect_table {
  std::vector<start_seen> starts;
  std::map<std::string, int> effects;
  std::map<std::string, int> running;  // by key and consumer
  int overlap_max = 0;
  int running_max = 0;
  [[nodiscard]] int started(const std::string& key) const {
    return int(std::count_if(starts.begin(), starts.end(), [&](const auto& s) { return s.key == key; }));
  }
  [[nodiscard]] int effect(const std::string& key) const {
    auto it = effects.find(key);
    return it == effects.end() ? 0 : it->second;
  }
  [[nodiscard]] std::vector<std::uint32_t> attempts(const std::string& key) const {
    std::vector<std::uint32_t> result;
    for (const auto& s : starts) {
      if (s.key == key) {
        result.push_back(s.attempt);
      }
    }
    return result;
  }
};

struct sent_message {
  std::string key;
  std::optional<core::finished> end;
  int ends = 0;  // must never be more than one
};

class node : public port {
 public:
  explicit node(virtual_net& n) : net(n) {}
  // One turn of its loop: timers, flush, everything out.
  virtual void turn() = 0;
  [[nodiscard]] virtual time_point next_deadline() = 0;
  virtual_net& net;
  bool alive = true;
};

class sender_node : public node {
 public:
  sender_node(virtual_net& n, core::sender_config config, std::uint64_t seed)
      : node(n), ids(seed), core(std::move(config), ids) {}

  std::shared_ptr<sent_message> send(const std::string& key, const std::string& payload = "payload",
                                     std::optional<duration> deadline = {}) {
    auto m = core.make_message(key, wire::encode_headers({}), payload);
    auto sent = std::make_shared<sent_message>();
    sent->key = key;
    m->receipt = sent;
    core.submit(net.instant(), std::move(m), deadline);
    return sent;
  }

  void handle_frame(const core::route& from, const core::frame& f, const std::shared_ptr<const void>&) override {
    core.handle_frame(net.instant(), from, f);
  }
  void handle_unreadable(const core::route& from, const wire::unreadable& u) override {
    core.handle_unreadable(net.instant(), from, u.type, u.session, u.text);
  }
  void handle_unsendable(const core::route& to) override { core.handle_unsendable(net.instant(), to); }
  void handle_writable(const core::route& to) override { core.handle_writable(net.instant(), to); }

  void turn() override {
    core.handle_time(net.instant());
    core.flush(net.instant());
    while (!core.frames.empty()) {
      auto out = std::exchange(core.frames, {});
      for (auto& o : out) {
        if (!net.send(this, o.to, o.frame)) {
          core.handle_unsendable(net.instant(), o.to);
        }
      }
    }
    for (auto& f : std::exchange(core.finished_messages, {})) {
      const auto note = [&](const std::shared_ptr<void>& receipt, bool last) {
        auto sent = std::static_pointer_cast<sent_message>(receipt);
        ++sent->ends;
        if (!last) {
          sent->end.emplace();
          sent->end->state = f.state;
          sent->end->result = f.result;
          sent->end->why = f.why;
        } else {
          sent->end = std::move(f);
          sent->end->receipt.reset();  // it would keep itself alive
        }
      };
      if (f.joined) {
        for (auto& j : *f.joined) {
          note(j, false);
        }
      }
      if (auto receipt = f.receipt) {
        note(receipt, true);
      }
    }
  }
  [[nodiscard]] time_point next_deadline() override { return core.next_deadline(); }

  seeded_entropy ids;
  core::sender_core core;
};

class consumer_node : public node {
 public:
  using handler = std::function<run_plan(const core::held&)>;
  static constexpr std::uint32_t dead_letter_socket = 1000;

  consumer_node(virtual_net& n, core::consumer_config config, effect_table& e, handler h, std::uint64_t seed,
                std::optional<std::string> dead_letters)
      : node(n), effects(e), handle(std::move(h)), ids(seed), generator(seed), core(std::move(config), ids, [this] {
          return std::uniform_real_distribution<double>(0, 1)(generator);
        }) {
    if (dead_letters) {
      core::sender_config c;
      c.logical_id = core.config().logical_id + "/dead-letters";
      c.instance = ids.next();
      c.sender_id = ids.next();
      c.age_max.reset();
      c.largest_message = core.config().largest_message + 65536;
      letters.emplace(c, ids);
      letters->add_connection(n.instant(), {dead_letter_socket, ""});
      n.dial(*dead_letters, this, dead_letter_socket);
    }
  }

  void handle_frame(const core::route& from, const core::frame& f, const std::shared_ptr<const void>& buffer) override {
    if (from.socket == dead_letter_socket) {
      letters->handle_frame(net.instant(), from, f);
    } else {
      core.handle_frame(net.instant(), from, f, buffer);
    }
  }
  void handle_unreadable(const core::route& from, const wire::unreadable& u) override {
    core.handle_unreadable(net.instant(), from, u.type, u.session, u.text);
  }
  void handle_unsendable(const core::route& to) override {
    to.socket == dead_letter_socket ? letters->handle_unsendable(net.instant(), to)
                                    : core.handle_unsendable(net.instant(), to);
  }
  void handle_writable(const core::route& to) override {
    to.socket == dead_letter_socket ? letters->handle_writable(net.instant(), to)
                                    : core.handle_writable(net.instant(), to);
  }

  void turn() override {
    for (bool again = true; again && alive;) {
      again = false;
      core.handle_time(net.instant());
      if (letters) {
        letters->handle_time(net.instant());
        core.set_burial_room(letters->free_credit(), letters->free_credit_bytes());
      }
      core.flush(net.instant());
      for (auto* d : std::exchange(core.burials, {})) {
        bury(d);
      }
      if (letters) {
        if (const auto size = core.take_burial_wish()) {
          letters->want_credit(net.instant(), size);
        }
        letters->flush(net.instant());
        send_all(letters->frames, *letters);
        for (auto& f : std::exchange(letters->finished_messages, {})) {
          core.handle_buried(net.instant(), static_cast<core::held*>(f.receipt.get()));
          again = true;
        }
      }
      send_all(core.frames, core);
      for (auto* d : std::exchange(core.dispatch, {})) {
        work.push_back(d);
      }
      for (auto* d : std::exchange(core.stops, {})) {
        stop(d);
      }
      again = start_and_end_runs() || again;
    }
  }

  [[nodiscard]] time_point next_deadline() override {
    auto next = core.next_deadline();
    if (letters) {
      next = std::min(next, letters->next_deadline());
    }
    for (const auto& r : runs) {
      next = std::min(next, r.ends);
      if (!r.observed) {
        next = std::min(next, r.started + 10ms);
      }
    }
    return next;
  }

  struct run {
    core::held* d;
    run_plan plan;
    time_point started;
    time_point ends;
    std::string key;
    bool observed = false;
    bool stopped = false;
  };

  effect_table& effects;
  handler handle;
  seeded_entropy ids;
  std::mt19937_64 generator;
  core::consumer_core core;
  std::optional<core::sender_core> letters;
  std::deque<core::held*> work;
  std::vector<run> runs;
  std::uint64_t held_max = 0, held_bytes_max = 0;
  int stops_seen = 0;
  bool died = false;  // a run killed the process; the world takes it away

 private:
  template <class Core>
  void send_all(std::vector<core::outgoing>& frames, Core& from) {
    while (!frames.empty()) {
      for (auto& o : std::exchange(frames, {})) {
        if (!net.send(this, o.to, o.frame)) {
          from.handle_unsendable(net.instant(), o.to);
        }
      }
    }
  }

  void bury(core::held* d) {
    std::string payload;
    wire::encode_dead_letter({d->id, core.config().logical_id, d->why, d->retries.get(), d->headers, d->payload},
                             payload);
    auto m = letters->make_message(wire::dead_letter_key(d->id), wire::encode_headers({}), payload);
    m->receipt = std::shared_ptr<void>(std::shared_ptr<void>{}, d);
    letters->submit(net.instant(), std::move(m));
  }

  void stop(core::held* d) {
    for (auto& r : runs) {
      if (r.d == d && !r.stopped) {
        r.stopped = true;
        ++stops_seen;
        if (r.plan.obeys_stop) {
          r.ends = net.now;
          r.plan.result = onay::failure(error_class::uncertain, "stopped");
        }
      }
    }
  }

  bool start_and_end_runs() {
    bool changed = false;
    for (std::size_t i = 0; i < runs.size();) {
      auto& r = runs[i];
      if (r.ends <= net.now) {
        const auto done = r;
        runs.erase(runs.begin() + std::ptrdiff_t(i));
        --effects.running[done.key];
        if (done.plan.result.accepted()) {
          ++effects.effects[done.key];
        }
        core.handle_ended(net.instant(), {done.d, true, done.plan.result});
        changed = true;
        continue;
      }
      if (!r.observed && r.started + 10ms <= net.now) {
        r.observed = true;
        core.handle_started(net.instant(), r.d, r.started);
        changed = true;
      }
      ++i;
    }
    while (!work.empty() && runs.size() < core.config().concurrency) {
      auto* d = work.front();
      work.pop_front();
      changed = true;
      const bool startable = d->startable_until->load() > net.now.time_since_epoch().count() && d->limit > net.now &&
                             !core.paused() && !core.draining();
      if (!startable) {
        core.handle_ended(net.instant(), {d, false, {}});
        continue;
      }
      auto plan = handle(*d);
      const std::string key(d->key);
      effects.starts.push_back(
          {key, d->attempt, net.now, net.now - d->born, d->limit - net.now, core.config().logical_id});
      effects.overlap_max = std::max(effects.overlap_max, ++effects.running[key]);
      effects.running_max = std::max(effects.running_max, int(runs.size()) + 1);
      if (plan.kills) {
        died = true;
        alive = false;
        --effects.running[key];
        return false;
      }
      runs.push_back({d, plan, net.now, net.now + plan.takes, key});
    }
    return changed;
  }
};

// One sender, any number of consumers, a collector. The usual test needs no more than its constructor, `send`, `drive`.
class pair {
 public:
  struct options {
    core::sender_config sender;
    core::consumer_config consumer;
    bool consumer_binds = false;
    bool collector = true;
    std::uint64_t seed = 1;
    options() {
      sender.logical_id = "s";
      sender.lease = 2s;
      sender.heartbeat = 400ms;
      sender.age_max = 60s;
      consumer.logical_id = "c1";
      consumer.concurrency = 4;
      consumer.credit_max = 64;
      consumer.retry.attempts_max = 3;
      consumer.retry.backoff = {100ms, 1s, true};
      consumer.age_max = 60s;
      consumer.hello_interval = 400ms;
    }
  };

  explicit pair(const options& o = options()) : options_(o), seeds_(o.seed) {
    if (o.collector) {
      start_collector();
    }
    start_sender();
    add_consumer();
  }

  void start_sender() {
    auto c = options_.sender;
    c.instance = seeds_();
    c.sender_id = seeds_();
    c.epoch = 1;
    sender = std::make_unique<sender_node>(net, c, seeds_());
    if (options_.consumer_binds) {
      sender->core.add_connection(net.instant(), {0, ""});
      net.dial("source", sender.get(), 0);
    } else {
      net.bind("source", sender.get(), 0);
    }
  }

  void start_collector() {
    core::consumer_config c;
    c.logical_id = "collector";
    c.bury = core::burial::nowhere;
    c.retry.attempts_max.reset();
    c.age_max.reset();
    c.credit_max = collector_credit;
    c.largest_message = (8U << 20U) + 65536;
    c.instance = seeds_();
    collector = std::make_unique<consumer_node>(
        net, c, collector_effects,
        [this](const core::held& d) {
          auto letter = read_dead_letter(d.payload);
          if (letter) {
            letters[std::string(d.key)] = *letter;
          }
          return run_plan{};
        },
        seeds_(), std::nullopt);
    net.bind("letters", collector.get(), 0);
  }
  void kill_collector() {
    net.remove(collector.get());
    graveyard_.push_back(std::move(collector));
  }

  consumer_node& add_consumer(std::optional<core::consumer_config> config = {}) {
    auto c = config.value_or(options_.consumer);
    c.instance = seeds_();
    auto n = std::make_unique<consumer_node>(
        net, c, effects, [this](const core::held& d) { return handler(d); }, seeds_(),
        c.bury == core::burial::dead_letter_link ? std::optional<std::string>("letters") : std::nullopt);
    if (options_.consumer_binds) {
      net.bind("source", n.get(), 0);
    } else {
      n->core.add_connection(net.instant(), {0, ""});
      net.dial("source", n.get(), 0);
    }
    consumers.push_back(std::move(n));
    return *consumers.back();
  }

  // SIGKILL: nothing more leaves it, and its inbox is gone.
  void kill(std::size_t i) {
    auto& c = consumers.at(i);
    net.remove(c.get());
    for (auto& r : c->runs) {
      --effects.running[r.key];
    }
    graveyard_.push_back(std::move(c));
    consumers.erase(consumers.begin() + std::ptrdiff_t(i));
    ++kills;
  }

  std::shared_ptr<sent_message> send(const std::string& key, const std::string& payload = "payload",
                                     std::optional<duration> deadline = {}) {
    return sender->send(key, payload, deadline);
  }

  // Everybody's turn, then on to the next event, at most until `until`. False if nothing happens before that.
  bool step(time_point until) {
    turns();
    auto next = net.next_event();
    for (auto* n : nodes()) {
      next = std::min(next, n->next_deadline());
    }
    if (next > until) {
      return false;
    }
    net.now = std::max(net.now, next);
    net.deliver_due();
    turns();
    return true;
  }

  // Through `d` of virtual time. A run that makes no progress in time is a livelock, and fails.
  void drive(duration d) {
    const auto until = net.now + d;
    drive_while([] { return true; }, until);
    net.now = until;
    turns();
  }
  // Until `done`, at most `d`; true if it came to that.
  bool drive_until(const std::function<bool()>& done, duration d) {
    turns();
    drive_while([&] { return !done(); }, net.now + d);
    return done();
  }

  [[nodiscard]] std::size_t pending() const { return sender->core.messages().held(); }

  virtual_net net;
  effect_table effects, collector_effects;
  std::function<run_plan(const core::held&)> handler = [](const core::held&) { return run_plan{}; };
  std::unique_ptr<sender_node> sender;
  std::vector<std::unique_ptr<consumer_node>> consumers;
  std::unique_ptr<consumer_node> collector;
  std::map<std::string, dead_letter> letters;  // as the collector stored them, by message id
  std::vector<node*> others;                   // further nodes of a test's own
  std::uint32_t collector_credit = 1024;
  int kills = 0;
  // Poison that kills its process: whether a new one takes its place.
  bool restart_after_death = true;
  int deaths = 0;

 private:
  std::vector<node*> nodes() {
    std::vector<node*> all;
    if (sender) {
      all.push_back(sender.get());
    }
    for (auto& c : consumers) {
      all.push_back(c.get());
    }
    if (collector) {
      all.push_back(collector.get());
    }
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  void turns() {
    for (auto* n : nodes()) {
      n->turn();
    }
    for (auto& c : consumers) {
      const auto look = c->core.look();
      c->held_max = std::max(c->held_max, look.held);
      c->held_bytes_max = std::max(c->held_bytes_max, look.held_bytes);
    }
    for (std::size_t i = 0; i < consumers.size();) {
      if (!consumers[i]->died) {
        ++i;
        continue;
      }
      ++deaths;
      const auto config = consumers[i]->core.config();
      kill(i);
      --kills;
      if (restart_after_death) {
        add_consumer(config);
      }
    }
  }

  template <class F>
  void drive_while(F&& go_on, time_point until) {
    std::uint64_t steps = 0;
    auto at = net.now;
    while (go_on() && step(until)) {
      steps = net.now == at ? steps + 1 : 0;
      at = net.now;
      if (steps > 10'000) {
        throw std::runtime_error("livelock: 10,000 steps without a microsecond passing");
      }
    }
    if (go_on()) {
      net.now = until;
      turns();
    }
  }

  options options_;
  std::mt19937_64 seeds_;
  std::vector<std::unique_ptr<consumer_node>> graveyard_;
};

}  // namespace onay::test
