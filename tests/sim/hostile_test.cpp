// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Peers that hold a session and say absurd things in it, command after sound command; beside them healthy ones.
#include "support/catch.hpp"
#include "support/hostile_frames.hpp"
#include "support/pair.hpp"

using namespace onay;
using namespace onay::test;

namespace {

constexpr int frames_each = 20'000;
constexpr int burst = 20;
constexpr duration slowest_allowed = 5s;

// Greets until it has a session, keeps that alive, and says `burst` absurd things in it every few milliseconds.
class attacker : public node {
 public:
  attacker(virtual_net& n, core::greeting self, std::uint64_t seed) : node(n), say(seed), self_(std::move(self)) {
    net.dial("source", this, 0);
    next_ = net.now;
  }

  void handle_frame(const core::route&, const core::frame& f, const std::shared_ptr<const void>&) override {
    say.hear(f);
  }
  void handle_unreadable(const core::route&, const wire::unreadable& u) override {
    FAIL("a core sent what can't be read: " << u.text);
  }
  void handle_unsendable(const core::route&) override {}
  void handle_writable(const core::route&) override { connected_ = true; }

  void turn() override {
    if (!connected_ || net.now < next_ || done()) {
      return;
    }
    next_ = net.now + 5ms;
    if (say.session == 0 || say.rarely(400)) {
      send(say.hello(self_));
    }
    if (say.rarely(40)) {
      send(say.odd_hello(self_, self_.role() == core::role::sender ? "s" : "c1"));
    }
    for (int i = 0; i < burst; ++i) {
      send(self_.role() == core::role::sender ? say.from_sender() : say.from_consumer());
    }
    if (!say.rarely(20)) {
      send(say.beat(self_.role()));
    }
    say.forget();
  }
  [[nodiscard]] time_point next_deadline() override { return connected_ && !done() ? next_ : core::never; }
  [[nodiscard]] bool done() const { return sent_ >= frames_each; }

  hostile_frames say;

 private:
  void send(const core::frame& f) {
    ++sent_;
    net.send(this, {0, ""}, f);
  }

  core::greeting self_;
  int sent_ = 0;
  bool connected_ = false;
  time_point next_{};
};

core::greeting consumer_greeting(std::uint64_t takes) {
  core::greeting g;
  g.logical_id = "hostile";
  g.instance = 66;
  g.largest_message = takes;
  g.byte_window = takes;
  g.part = core::consumer_greeting{3U, false, true, takes};
  return g;
}

core::greeting sender_greeting(duration heartbeat, duration lease) {
  core::greeting g;
  g.logical_id = "hostile";
  g.instance = 66;
  g.largest_message = hostile_frames::most;
  g.part = core::sender_greeting{666, 1, 1, heartbeat, lease};
  return g;
}

// One message each 10 ms while `a` attacks; none may take long.
std::vector<std::shared_ptr<sent_message>> send_beside(pair& p, const attacker& a, int count) {
  std::vector<std::shared_ptr<sent_message>> sent;
  std::deque<std::pair<time_point, std::shared_ptr<sent_message>>> open;
  duration slowest{};
  const auto end = p.net.now + 60s;
  while (p.net.now < end && (int(sent.size()) < count || !a.done() || !open.empty())) {
    if (int(sent.size()) < count) {
      sent.push_back(p.send("k" + std::to_string(sent.size())));
      open.emplace_back(p.net.now, sent.back());
    }
    p.drive(10ms);
    std::erase_if(open, [&](const auto& o) {
      slowest = std::max(slowest, p.net.now - o.first);
      return o.second->ends > 0;
    });
  }
  CHECK(a.done());
  CHECK(open.empty());
  CHECK(slowest < slowest_allowed);
  return sent;
}

}  // namespace

TEST_CASE("a consumer that says absurd things in a session of its own disturbs no other") {
  const std::uint64_t seed = GENERATE(1, 2, 3, 4);
  CAPTURE(seed);
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  p.drive(10ms);  // who comes first has the name
  attacker a(p.net, consumer_greeting(0), std::uint64_t(seed));
  p.others.push_back(&a);
  for (const auto& m : send_beside(p, a, 300)) {
    INFO(m->key);
    CHECK(m->ends == 1);
    REQUIRE(m->end);
    CHECK(m->end->state == final_state::accepted);
    CHECK(p.effects.effect(m->key) == 1);
  }
  CHECK(a.say.sessions > 1);
  CHECK(a.say.errors > 0);
  CHECK(a.say.handed_over == 0);
  CHECK(p.sender->core.counters().bad_frames > 0);
  p.net.remove(&a);
  p.drive(10s);
  CHECK(p.sender->core.sessions().size() == 1);
}

// It may settle what it was handed as it likes; whatever it says, each message ends once.
TEST_CASE("a consumer that takes messages and says absurd things makes none of them end twice or never") {
  const std::uint64_t seed = GENERATE(1, 2, 3, 4);
  CAPTURE(seed);
  pair p;
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  p.drive(10ms);  // who comes first has the name
  attacker a(p.net, consumer_greeting(1'000'000), std::uint64_t(seed));
  p.others.push_back(&a);
  std::vector<std::shared_ptr<sent_message>> sent;
  for (int i = 0; i < 300; ++i) {
    sent.push_back(p.send("k" + std::to_string(i)));
    p.drive(10ms);
  }
  CHECK(p.drive_until([&] { return a.done(); }, 60s));
  p.net.remove(&a);
  CHECK(p.drive_until([&] { return p.pending() == 0; }, 10min));
  for (const auto& m : sent) {
    INFO(m->key);
    CHECK(m->ends == 1);
    CHECK(p.effects.effect(m->key) <= 1);
  }
  CHECK(a.say.handed_over > 0);
}

TEST_CASE("a sender that says absurd things in a session of its own disturbs no other") {
  const auto seed = GENERATE(1, 2, 3, 4);
  const auto [heartbeat, lease] =
      GENERATE(std::pair<duration, duration>(400ms, 2s), std::pair<duration, duration>(1ms, 10ms),
               std::pair<duration, duration>(6h, 24h));
  CAPTURE(seed, heartbeat.count(), lease.count());
  pair::options o;
  o.consumer_binds = true;
  pair p(o);
  p.handler = [](const core::held&) { return run_plan{1ms}; };
  p.drive(10ms);  // who comes first has the name
  attacker a(p.net, sender_greeting(heartbeat, lease), std::uint64_t(seed));
  p.others.push_back(&a);
  for (const auto& m : send_beside(p, a, 300)) {
    INFO(m->key);
    CHECK(m->ends == 1);
    REQUIRE(m->end);
    CHECK(m->end->state == final_state::accepted);
    CHECK(p.effects.effect(m->key) == 1);
  }
  CHECK(a.say.sessions > 1);
  CHECK(a.say.errors > 0);
  CHECK(p.consumers[0]->core.counters().bad_frames > 0);
}
