// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Sessions and identities, and peers that don't keep to the rules: case C39 and rules 2 to 5, 12.
#include "support/catch.hpp"
#include "support/pair.hpp"
#include "support/raw_peer.hpp"

using namespace onay;
using namespace onay::test;

TEST_CASE("C39: of two consumers with one name the newcomer is refused by name, and the first one goes on") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{10ms}; };
  for (int i = 0; i < 100; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(20ms);
  auto& second = p.add_consumer();
  REQUIRE(p.drive_until([&] { return !second.core.refused_by_peer().empty(); }, 3s));
  CHECK(second.core.refused_by_peer().find("identity in use") != std::string::npos);
  CHECK(!second.core.hopeful());
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10s));
  for (const auto& [key, n] : p.effects.effects) {
    CHECK(n == 1);
  }
  CHECK(p.sender->core.counters().peers_lost == 0);
}

TEST_CASE("a restarted consumer takes its predecessor's place at once when nobody answers at the old connection") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1h}; };
  p.send("k");
  p.drive(100ms);
  p.kill(0);
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 1'500ms));
  CHECK(p.sender->core.counters().peers_lost == 1);
}

TEST_CASE("a silent predecessor is replaced after two heartbeats") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1h}; };
  p.send("k");
  p.drive(100ms);
  // The old process hangs: its connection is open, but nothing comes from it.
  auto hung = std::move(p.consumers[0]);
  p.consumers.clear();
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  p.add_consumer();
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 3s));
}

TEST_CASE(
    "a frame without a session is answered hello_required, one of another session unknown_session, and nothing "
    "changes") {
  pair p;
  raw_peer raw;
  p.net.dial("source", &raw, 0);
  p.drive(10ms);
  REQUIRE(raw.connected);
  core::settle s;
  s.session = 12345;
  p.net.send(&raw, {0, ""}, s);
  p.drive(10ms);
  REQUIRE(raw.last<core::error>());
  CHECK(raw.last<core::error>()->code == core::error_code::hello_required);
  CHECK(raw.last<core::error>()->session == 12345U);
}

TEST_CASE("a repeated HELLO gets the same WELCOME, an older one nothing") {
  pair::options o;
  o.consumer_binds = true;
  pair p(o);
  raw_peer raw;
  p.net.dial("source", &raw, 0);
  p.drive(10ms);
  auto h = sender_hello();
  h.connection = 5;
  p.net.send(&raw, {0, ""}, h);
  p.drive(10ms);
  REQUIRE(raw.last<core::welcome>());
  const auto session = raw.last<core::welcome>()->session;
  p.net.send(&raw, {0, ""}, h);
  p.drive(10ms);
  CHECK(raw.last<core::welcome>()->session == session);
  const auto count = raw.seen.size();
  h.connection = 4;
  p.net.send(&raw, {0, ""}, h);
  p.drive(1ms);
  CHECK(raw.seen.size() == count);
}

TEST_CASE("an unsupported version, a wrong role and impossible terms are refused with a code") {
  pair::options o;
  o.consumer_binds = true;
  pair p(o);
  raw_peer raw;
  p.net.dial("source", &raw, 0);
  p.drive(10ms);
  auto h = sender_hello();
  h.version_min = h.version_max = 2;
  p.net.send(&raw, {0, ""}, h);
  p.drive(10ms);
  REQUIRE(raw.last<core::refused>());
  CHECK(raw.last<core::refused>()->why == core::refusal::unsupported_version);
  h = sender_hello();
  h.self.part = core::consumer_greeting{};
  p.net.send(&raw, {0, ""}, h);
  p.drive(10ms);
  CHECK(raw.last<core::refused>()->why == core::refusal::wrong_role);
  h = sender_hello();
  h.self.part = core::sender_greeting{5, 1, 1, 1s, 2s};
  p.net.send(&raw, {0, ""}, h);
  p.drive(10ms);
  CHECK(raw.last<core::refused>()->why == core::refusal::bad_options);
}

TEST_CASE("a sender that overruns its credit, in messages or in bytes, loses its session and nobody else's") {
  for (bool by_bytes : {false, true}) {
    pair::options o;
    o.consumer_binds = true;
    o.consumer.credit_bytes_max = 100'000;
    o.consumer.largest_message = 100'000;
    pair p(o);
    raw_peer raw;
    p.net.dial("source", &raw, 0);
    p.drive(10ms);
    p.net.send(&raw, {0, ""}, sender_hello());
    p.drive(10ms);
    const auto session = raw.last<core::welcome>()->session;
    core::deliver d;
    d.session = session;
    d.first_tag = 1;
    const std::string payload(by_bytes ? 60'000 : 1, 'x');
    for (std::uint64_t i = 1; i <= (by_bytes ? 2U : 100U); ++i) {
      core::deliver_item item;
      item.number = i;
      item.size = payload.size() + 1;
      item.doc.key = "k";
      item.doc.payload = payload;
      d.items.push_back(item);
    }
    p.net.send(&raw, {0, ""}, d);
    p.drive(10ms);
    REQUIRE(raw.last<core::error>());
    CHECK(raw.last<core::error>()->code == core::error_code::credit_overrun);
    CHECK(raw.last<core::error>()->closed);
    auto healthy = p.send("healthy");
    REQUIRE(p.drive_until([&] { return healthy->end.has_value(); }, 5s));
    CHECK(healthy->end->state == final_state::accepted);
  }
}

TEST_CASE("settlements of tags and numbers that were never handed out change nothing") {
  pair p;
  p.handler = [](const core::held&) { return run_plan{1s}; };
  auto sent = p.send("k");
  p.drive(50ms);
  const auto id = p.sender->core.sessions().begin()->first;
  auto waiting = p.send("waiting");
  core::settle s;
  s.session = id;
  s.number = 1000;
  s.accepted = core::ranges{{2, 1'000'000}};
  core::settlement_item never_sent;
  never_sent.tag = 77;
  never_sent.kind = core::settlement::buried;
  s.others.push_back(never_sent);
  core::late_item never_numbered;
  never_numbered.epoch = 1;
  never_numbered.number = 1'000'000;
  s.late.push_back(never_numbered);
  s.started = core::ranges{{1, ~std::uint64_t{0} - 1}};
  s.asked = core::ranges{{1, ~std::uint64_t{0} - 1}};
  p.net.send(p.consumers[0].get(), {0, ""}, s);
  p.drive(50ms);
  CHECK(!sent->end);
  CHECK(!waiting->end);
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10s));
}

TEST_CASE("a message larger than every consumer takes is set aside, and the others flow on") {
  pair::options o;
  o.consumer.largest_message = 1'000;
  pair p(o);
  p.send("large", std::string(2'000, 'x'));
  auto small = p.send("small");
  REQUIRE(p.drive_until([&] { return small->end.has_value(); }, 5s));
  CHECK(p.sender->core.undeliverable() == 1);
  auto larger = o.consumer;
  larger.logical_id = "c2";
  larger.largest_message = 10'000;
  p.add_consumer(larger);
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 5s));
  CHECK(p.sender->core.undeliverable() == 0);
}
