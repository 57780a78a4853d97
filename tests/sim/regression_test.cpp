// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Mechanisms that were wrong once, each named by what went wrong.
#include "support/catch.hpp"
#include "support/pair.hpp"
#include "support/raw_peer.hpp"

using namespace onay;
using namespace onay::test;

namespace {

// A sender of the test's own on the consumer's second socket.
struct other_sender {
  other_sender(pair& p, const std::string& name, std::uint32_t socket, core::sender_config c = pair::options().sender)
      : node(p.net, named(std::move(c), name, socket), 100 + socket) {
    p.net.bind(name, &node, 0);
    p.consumers[0]->core.add_connection(p.net.instant(), {socket, ""});
    p.net.dial(name, p.consumers[0].get(), socket);
    p.others.push_back(&node);
  }
  static core::sender_config named(core::sender_config c, const std::string& name, std::uint32_t socket) {
    c.logical_id = name;
    c.instance = 1000 + socket;
    c.sender_id = 2000 + socket;
    c.epoch = 1;
    return c;
  }
  sender_node node;
};

}  // namespace

TEST_CASE("an error that names session zero on a connection without a session ends nothing") {
  for (bool consumer_binds : {false, true}) {
    pair::options o;
    o.consumer_binds = consumer_binds;
    pair p(o);
    raw_peer raw;
    p.net.dial("source", &raw, 0);
    p.drive(10ms);
    core::error e;
    e.code = core::error_code::unreadable;
    e.session = 0;
    e.closed = true;
    p.net.send(&raw, {0, ""}, e);
    p.drive(10ms);
    auto sent = p.send("k");
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
  }
}

TEST_CASE("a grant that is lowered while a raise of it is untold doesn't make the consumer repeat itself") {
  pair::options o;
  o.consumer.concurrency = 1;
  pair p(o);
  other_sender b(p, "b", 1);
  p.handler = [](const core::held&) { return run_plan{20ms}; };
  p.drive(20ms);
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 1 + round; ++i) {
      p.send("a" + std::to_string(round) + "-" + std::to_string(i));
    }
    for (int i = 0; i < 40; ++i) {
      b.node.send("b" + std::to_string(round) + "-" + std::to_string(i));
    }
    const auto before = p.net.frames_sent;
    p.drive(100ms);
    REQUIRE(p.net.frames_sent - before < 500);
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0 && b.node.core.messages().held() == 0; }, 5min));
}

TEST_CASE("a suspect that is accepted late elsewhere gives its slot back although its start was asked for") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  o.consumer.concurrency = 1;
  pair p(o);
  auto second = o.consumer;
  second.logical_id = "c2";
  p.handler = [](const core::held& d) {
    run_plan plan{d.key == "m" ? duration(4s) : d.key == "busy" ? duration(6s) : duration(1ms)};
    plan.obeys_stop = false;
    return plan;
  };
  auto m = p.send("m");
  p.drive(100ms);
  p.add_consumer(second);
  p.drive(100ms);
  auto busy = p.send("busy");  // occupies c2, so that the redelivery of m waits there
  p.drive(100ms);
  p.net.reconnect = 3s;
  auto* first = p.consumers[0].get();
  p.net.fate_of = [&](const core::frame& f, bool from_dialer) {
    (void)from_dialer;
    const auto* beat = std::get_if<core::consumer_heartbeat>(&f);
    return beat != nullptr && p.net.now < time_point(100h) + 3s && first->core.look().sessions > 0 &&
                   first->core.look().running > 0 && beat->running.empty() == false && beat->running.contains(1) &&
                   p.effects.running["busy"] == 1 && p.consumers[0].get() == first && beat->queued.empty()
               ? fate::drop
               : fate::pass;
  };
  REQUIRE(p.drive_until([&] { return m->end && busy->end; }, 60s));
  p.net.fate_of = nullptr;
  auto after = p.send("after");
  REQUIRE(p.drive_until([&] { return after->end.has_value(); }, 10s));
  p.drive(5s);
  for (auto& c : p.consumers) {
    CHECK(c->core.look().asking == 0);
    CHECK(c->core.look().held == 0);
    CHECK(c->core.records().pinned() == 0);
  }
}

TEST_CASE("a connection that is made anew so fast that nobody noticed is resumed, not lost") {
  for (bool consumer_binds : {false, true}) {
    pair::options o;
    o.consumer_binds = consumer_binds;
    pair p(o);
    p.handler = [](const core::held&) { return run_plan{8s}; };
    auto sent = p.send("k");
    p.drive(1s);
    p.net.reconnect = 1us;
    p.net.cut_all();
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
    CHECK(p.effects.started("k") == 1);
    CHECK(p.consumers[0]->stops_seen == 0);
    CHECK(p.sender->core.counters().peers_lost == 0);
  }
}

TEST_CASE("two peers that claim each other's names end neither the process nor a third one") {
  pair::options o;
  o.consumer_binds = true;
  pair p(o);
  raw_peer x, y;
  p.net.dial("source", &x, 0);
  p.net.dial("source", &y, 0);
  p.drive(10ms);
  auto hello = sender_hello(11);
  hello.self.logical_id = "a";
  p.net.send(&x, {0, ""}, hello);
  hello = sender_hello(12);
  hello.self.logical_id = "b";
  p.net.send(&y, {0, ""}, hello);
  p.drive(10ms);
  hello = sender_hello(13);
  hello.self.logical_id = "b";
  p.net.send(&x, {0, ""}, hello);
  hello = sender_hello(14);
  hello.self.logical_id = "a";
  p.net.send(&y, {0, ""}, hello);
  p.drive(5s);
  auto sent = p.send("k");
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 5s));
}

TEST_CASE("results that piled up during an outage come in frames that the sender takes") {
  pair::options o;
  o.consumer.concurrency = 64;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{200ms, accept(std::string(60'000, 'r'))}; };
  std::vector<std::shared_ptr<sent_message>> sent;
  for (int i = 0; i < 64; ++i) {
    sent.push_back(p.send("k" + std::to_string(i)));
  }
  p.drive(100ms);
  p.net.reconnect = 1s;
  p.net.cut_all();
  std::size_t largest = 0;
  p.net.fate_of = [&](const core::frame& f, bool) {
    if (std::holds_alternative<core::settle>(f)) {
      std::string bytes;
      wire::encode(f, bytes);
      largest = std::max(largest, bytes.size());
    }
    return fate::pass;
  };
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 20s));
  CHECK(sent[5]->end->result.size() == 60'000);
  CHECK(largest < (1U << 20U) + 70'000);
}

TEST_CASE("an idle sender's grant never starves another, in messages or in bytes") {
  SECTION("one place for two senders") {
    pair::options o;
    o.consumer.concurrency = 1;
    o.consumer.credit_max = 1;
    pair p(o);
    p.drive(100ms);
    other_sender b(p, "b", 1);
    p.drive(100ms);
    auto sent = b.node.send("k");
    REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 10s));
    auto back = p.send("k2");
    REQUIRE(p.drive_until([&] { return back->end.has_value(); }, 10s));
  }
  SECTION("messages larger than either half of the pool") {
    pair::options o;
    o.consumer.concurrency = 2;
    o.consumer.credit_bytes_max = 300'000;
    o.consumer.largest_message = 300'000;
    pair p(o);
    p.drive(100ms);
    other_sender b(p, "b", 1);
    p.drive(100ms);
    for (int i = 0; i < 5; ++i) {
      p.send("a" + std::to_string(i), std::string(200'000, 'x'));
      b.node.send("b" + std::to_string(i), std::string(200'000, 'x'));
    }
    REQUIRE(p.drive_until([&] { return p.pending() == 0 && b.node.core.messages().held() == 0; }, 60s));
    CHECK(p.consumers[0]->held_bytes_max <= 300'000);
  }
}

TEST_CASE("a consumer that drains resumes a cut connection, so that its settlements arrive") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{2s}; };
  auto sent = p.send("k");
  p.drive(500ms);
  auto& core = p.consumers[0]->core;
  core.begin_drain(p.net.instant(), p.net.now + 10s);
  p.net.cut_all();
  REQUIRE(p.drive_until([&] { return core.drain_done(); }, 9s));
  CHECK(sent->end->state == final_state::accepted);
  CHECK(p.consumers[0]->stops_seen == 0);
  CHECK(p.effects.started("k") == 1);
}

TEST_CASE("terms that would spin or never end are refused by both kinds of end") {
  pair::options o;
  o.consumer_binds = true;
  pair p(o);
  raw_peer raw;
  p.net.dial("source", &raw, 0);
  p.drive(10ms);
  const core::sender_greeting bad[] = {{5, 1, 1, duration(0), duration(0)},
                                       {5, 1, 1, duration(1) + duration::max() / 2, duration::max()},
                                       {5, 1, 1, 1s, duration::max()}};
  for (const auto& terms : bad) {
    auto h = sender_hello();
    h.self.part = terms;
    p.net.send(&raw, {0, ""}, h);
    p.drive(10ms);
    REQUIRE(raw.last<core::refused>());
    CHECK(raw.last<core::refused>()->why == core::refusal::bad_options);
    raw.seen.clear();
  }
}

TEST_CASE("a sender that slept because it was alone doesn't give its next consumer an endless lease") {
  pair::options o;
  pair p(o);
  p.kill(0);
  p.drive(5s);
  p.net.now += 1h;  // nothing to do: its loop doesn't turn
  auto sent = p.send("k");
  p.handler = [](const core::held&) { return run_plan{1h}; };
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return p.effects.started("k") == 1; }, 5s));
  p.kill(0);
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  auto other = o.consumer;
  other.logical_id = "c2";
  p.add_consumer(other);
  REQUIRE(p.drive_until([&] { return sent->end.has_value(); }, 20s));
}

TEST_CASE("a collector takes letters whose time is up") {
  core::consumer_config c;
  c.logical_id = "collector";
  c.bury = core::burial::nowhere;
  c.retry.attempts_max.reset();
  c.age_max.reset();
  c.concurrency = 1;
  pair::options o;
  o.consumer = c;
  o.collector = false;
  o.sender.age_max = 100ms;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{80ms}; };
  for (int i = 0; i < 10; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(2s);
  CHECK(p.effects.effects.size() >= 2);
}

TEST_CASE("a dead-letter link gets credit although another one idles on all of it") {
  pair::options o;
  pair p(o);
  p.drive(100ms);  // c1's link has the collector's whole credit
  auto second = o.consumer;
  second.logical_id = "c2";
  p.add_consumer(second);
  p.drive(100ms);
  p.consumers[0]->core.begin_drain(p.net.instant(), p.net.now + 1s);
  p.drive(100ms);
  p.handler = [](const core::held&) { return run_plan{1ms, failure(error_class::permanent, "no")}; };
  for (int i = 0; i < 20; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 3s));
  CHECK(p.letters.size() == 20);
}
