// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Credit, bounds, fairness, lossy links: cases C29, C30, C31, C33, C34.
#include "support/catch.hpp"
#include "support/pair.hpp"
#include "support/raw_peer.hpp"

using namespace onay;
using namespace onay::test;

TEST_CASE("C29: a consumer never holds more than its credit, in messages and in bytes") {
  pair::options o;
  o.consumer.concurrency = 10;
  o.consumer.credit_max = 100;
  o.consumer.credit_bytes_max = 300U << 10U;
  o.consumer.largest_message = 300U << 10U;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{5ms}; };
  for (int i = 0; i < 2'000; ++i) {
    p.send("k" + std::to_string(i), std::string(10'000, 'x'));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  CHECK(p.consumers[0]->held_max <= 100);
  CHECK(p.consumers[0]->held_bytes_max <= (300U << 10U));
  CHECK(p.consumers[0]->held_bytes_max > (200U << 10U));
  CHECK(p.effects.running_max <= 10);
  CHECK(p.sender->core.counters().redeliveries == 0);
  CHECK(p.sender->core.counters().resent_copies == 0);
}

TEST_CASE("C30: parked retries hold no credit, so healthy messages flow past failing ones") {
  pair::options o;
  o.consumer.retry.attempts_max = 10;
  o.consumer.retry.backoff = {1s, 1s, false};
  pair p(o);
  p.handler = [](const core::held& d) {
    return d.key.starts_with("bad") ? run_plan{1ms, failure(error_class::transient, "down")} : run_plan{2ms};
  };
  for (int i = 0; i < 2'500; ++i) {
    p.send((i % 5 == 0 ? "bad" : "good") + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.effects.effects.size() == 2'000; }, 10s));
  p.drive(10ms);
  CHECK(p.pending() == 500);
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  CHECK(p.letters.size() == 500);
  for (const auto& [id, letter] : p.letters) {
    CHECK(p.effects.started(letter.record.operation_key) == 10);
  }
}

TEST_CASE("the number of parked retries is bounded by holding fresh messages back") {
  pair::options o;
  o.sender.parked_max = 20;
  o.consumer.credit_max = 8;
  o.consumer.retry.backoff = {1s, 1s, false};
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1ms, failure(error_class::transient, "down")}; };
  for (int i = 0; i < 200; ++i) {
    p.send("k" + std::to_string(i));
  }
  std::size_t most = 0;
  REQUIRE(p.drive_until(
      [&] {
        most = std::max(most, p.sender->core.messages().parked());
        return p.pending() == 0;
      },
      5min));
  CHECK(most <= 20 + 8);
  CHECK(p.letters.size() == 200);
}

TEST_CASE("C31: a busy consumer hoards nothing that a free one could do") {
  pair::options o;
  o.consumer.concurrency = 1;
  o.consumer.credit_max = 1;
  pair p(o);
  p.handler = [](const core::held& d) { return run_plan{d.key == "long" ? duration(3s) : duration(10ms)}; };
  auto slow = p.send("long");
  p.drive(10ms);
  for (int i = 0; i < 8; ++i) {
    p.send("k" + std::to_string(i));
  }
  p.drive(490ms);
  auto second = o.consumer;
  second.logical_id = "c2";
  p.add_consumer(second);
  REQUIRE(p.drive_until([&] { return p.effects.effects.size() >= 7; }, 2s));
  CHECK(!slow->end);
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10s));
  CHECK(p.sender->core.counters().redeliveries == 0);
}

TEST_CASE("messages are shared out among consumers with equal credit") {
  pair p;
  auto config = p.consumers[0]->core.config();
  config.logical_id = "c2";
  p.add_consumer(config);
  p.handler = [](const core::held&) { return run_plan{10ms}; };
  p.drive(50ms);
  for (int i = 0; i < 64; ++i) {
    p.send("k" + std::to_string(i));
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10s));
  const auto first =
      std::count_if(p.effects.starts.begin(), p.effects.starts.end(), [](const auto& s) { return s.consumer == "c1"; });
  CHECK(first >= 24);
  CHECK(first <= 40);
}

TEST_CASE("C33: every way in which a run can end returns its permit and leaves no entry behind") {
  pair::options o;
  o.consumer.concurrency = 2;
  o.consumer.attempt_timeout = 50ms;
  o.consumer.inbox_max = 4'000;
  pair p(o);
  p.handler = [](const core::held& d) {
    const auto n = std::stoi(std::string(d.key.substr(1)));
    run_plan plan{1ms};
    switch (n % 6) {
      case 0:
        plan.result = failure(error_class::permanent, "permanent");
        break;
      case 1:
        plan.result = d.attempt == 1 ? failure(error_class::transient, "once") : accept();
        break;
      case 2:
        plan.takes = d.attempt == 1 ? duration(10s) : duration(1ms);
        break;
      case 3:
        plan.result = failure(error_class::uncertain, "always");
        break;
      default:
        break;
    }
    return plan;
  };
  for (int i = 0; i < 3'000; ++i) {
    p.send("k" + std::to_string(i));
    if (i % 6 == 4) {
      p.send("k" + std::to_string(i));  // joins
    }
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 10min));
  CHECK(p.effects.running_max == 2);
  p.drive(3s);
  const auto look = p.consumers[0]->core.look();
  CHECK(look.running + look.dispatched + look.asking + look.queued + look.waiting + look.held + look.unconfirmed +
            look.late ==
        0);
  CHECK(p.consumers[0]->core.records().claimed() == 0);
  CHECK(p.consumers[0]->core.records().pinned() == 0);
  CHECK(p.letters.size() == 1'000);
  auto fresh = p.send("k4");
  REQUIRE(p.drive_until([&] { return fresh->end.has_value(); }, 200ms));
}

TEST_CASE("C34: a reconnect resumes the session and causes no storm of redeliveries") {
  pair::options o;
  o.consumer.concurrency = 4;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{10ms}; };
  for (int i = 0; i < 3'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  for (int cut = 0; cut < 3; ++cut) {
    p.drive(2s);
    p.net.reconnect = 1s;  // shorter than the lease: the session goes on
    p.net.cut_all();
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 60s));
  CHECK(p.effects.starts.size() == 3'000);
  CHECK(p.sender->core.counters().redeliveries == 0);
  CHECK(p.sender->core.counters().peers_lost == 0);
  CHECK(p.consumers[0]->held_max <= 64);
}

TEST_CASE("C34: an outage longer than the lease redelivers what was held, and the inbox answers what was done") {
  pair::options o;
  o.sender.lease = 1s;
  o.sender.heartbeat = 200ms;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{10ms}; };
  for (int i = 0; i < 1'000; ++i) {
    p.send("k" + std::to_string(i));
  }
  for (int cut = 0; cut < 3; ++cut) {
    p.drive(500ms);
    p.net.reconnect = 3s;
    p.net.cut_all();
  }
  REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 2min));
  for (int i = 0; i < 1'000; ++i) {
    REQUIRE(p.effects.effect("k" + std::to_string(i)) == 1);
  }
  CHECK(p.effects.starts.size() <= 1'000 + 3 * 64);
  CHECK(p.letters.empty());
}

TEST_CASE("on a link that loses, repeats and swaps frames of every kind, every message has one effect") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    pair::options o;
    o.seed = seed;
    o.consumer_binds = seed % 2 == 0;
    pair p(o);
    std::mt19937_64 dice(seed);
    p.net.fate_of = [&](const core::frame&, bool) {
      switch (dice() % 20) {
        case 0:
        case 1:
          return fate::drop;
        case 2:
          return fate::duplicate;
        case 3:
          return fate::swap_with_next;
        default:
          return fate::pass;
      }
    };
    p.handler = [](const core::held& d) {
      const auto n = std::stoi(std::string(d.key.substr(1)));
      run_plan plan{1ms};
      if (n % 50 == 0) {
        plan.result = failure(error_class::permanent, "no");
      } else if (n % 7 == 0 && d.attempt == 1) {
        plan.result = failure(error_class::transient, "once");
      }
      return plan;
    };
    std::vector<std::shared_ptr<sent_message>> sent;
    for (int i = 0; i < 500; ++i) {
      sent.push_back(p.send("k" + std::to_string(i)));
    }
    INFO("seed " << seed);
    REQUIRE(p.drive_until([&] { return p.pending() == 0; }, 5min));
    for (int i = 0; i < 500; ++i) {
      const auto& s = *sent[std::size_t(i)];
      REQUIRE(s.ends == 1);
      REQUIRE(s.end->state == (i % 50 == 0 ? final_state::dead_lettered : final_state::accepted));
      REQUIRE(p.effects.effect(s.key) == (i % 50 == 0 ? 0 : 1));
    }
    CHECK(p.letters.size() == 10);
    CHECK(p.consumers[0]->held_max <= 64);
    CHECK(p.effects.overlap_max == 1);
    p.net.fate_of = nullptr;
    p.drive(5s);
    CHECK(p.consumers[0]->core.look().unconfirmed == 0);
    CHECK(p.consumers[0]->core.records().pinned() == 0);
  }
}

TEST_CASE("an idle link costs a heartbeat each way a second and nothing else") {
  pair p;
  auto sent = p.send("k");
  p.drive(5s);
  const auto before = p.net.frames_sent;
  p.drive(40s);
  // Two links (source, dead letters), 400 ms on the first and 1 s on the second, both ways.
  CHECK(p.net.frames_sent - before <= 2 * 100 + 2 * 40 + 4);
}

TEST_CASE("several senders share one consumer's credit in turn") {
  pair::options o;
  o.consumer.credit_max = 16;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  core::sender_config c = o.sender;
  c.logical_id = "s2";
  c.instance = 77;
  c.sender_id = 78;
  c.epoch = 1;
  sender_node second(p.net, c, 79);
  p.net.bind("source2", &second, 0);
  p.consumers[0]->core.add_connection(p.net.instant(), {1, ""});
  p.net.dial("source2", p.consumers[0].get(), 1);
  p.others.push_back(&second);
  for (int i = 0; i < 400; ++i) {
    p.send("a" + std::to_string(i));
    second.send("b" + std::to_string(i));
  }
  int a = 0, b = 0;
  REQUIRE(p.drive_until([&] { return p.effects.starts.size() >= 400; }, 10s));
  for (std::size_t i = 0; i < 400; ++i) {
    ++(p.effects.starts[i].key[0] == 'a' ? a : b);
  }
  CHECK(a >= 100);
  CHECK(b >= 100);
  CHECK(p.consumers[0]->held_max <= 16);
  REQUIRE(p.drive_until([&] { return p.pending() == 0 && second.core.messages().held() == 0; }, 30s));
}

TEST_CASE("a sender that confirms nothing gets no more than its share of the inbox, and others go on") {
  pair::options o;
  o.consumer_binds = true;
  o.consumer.inbox_max = 200;
  pair p(o);
  raw_peer greedy;
  p.net.dial("source", &greedy, 0);
  p.drive(10ms);
  p.net.send(&greedy, {0, ""}, sender_hello());
  p.drive(10ms);
  REQUIRE(greedy.last<core::welcome>());
  const auto session = greedy.last<core::welcome>()->session;

  std::uint64_t sent = 0, beats = 0;
  std::vector<std::shared_ptr<sent_message>> healthy;
  for (int i = 0; i < 200; ++i) {
    core::sender_heartbeat beat;
    beat.session = session;
    beat.number = ++beats;
    const auto* heard = greedy.last<core::consumer_heartbeat>();
    beat.echo = heard != nullptr ? heard->number : 0;
    beat.highest_tag = sent;
    beat.backlog_messages = 1'000;
    beat.next_size = 10;
    beat.epoch = 1;
    beat.lowest_held = 1;  // nothing is ever confirmed
    p.net.send(&greedy, {0, ""}, beat);
    std::uint64_t credit = heard != nullptr ? heard->credit_tag : 0;
    if (const auto* s = greedy.last<core::settle>()) {
      credit = std::max(credit, s->credit_tag);
    }
    core::deliver f;
    f.session = session;
    f.first_tag = sent + 1;
    std::deque<std::string> keys;
    for (; sent < credit; ++sent) {
      auto& item = f.items.emplace_back();
      item.number = sent + 1;
      item.size = keys.emplace_back("greedy" + std::to_string(sent)).size();
      item.doc.key = keys.back();
    }
    if (!f.items.empty()) {
      p.net.send(&greedy, {0, ""}, f);
    }
    healthy.push_back(p.send("k" + std::to_string(i)));
    p.drive(50ms);
  }
  CHECK(sent >= 90);
  CHECK(sent <= 100);
  CHECK(p.consumers[0]->core.records().pinned() <= 110);
  CHECK(std::all_of(healthy.begin(), healthy.end(), [](const auto& m) { return m->end.has_value(); }));
}
