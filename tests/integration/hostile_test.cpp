// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Hostile bytes at either socket: counted and answered, while a healthy pair goes on as if nobody was there.
#include "integration/fixture.hpp"

#include "support/hostile_frames.hpp"

#include <zmq.hpp>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

namespace onay::test {

namespace {

constexpr std::int64_t growth_max = 8 << 20;
constexpr auto slowest_allowed = 5s;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif
#else
constexpr bool sanitized = false;
#endif

constexpr std::size_t frames_a_block = 100;  // 10^5 in all, beside those of the warm-up
constexpr std::size_t blocks = sanitized ? 200 : 1'000;
constexpr std::size_t warm_up_blocks = sanitized ? 20 : 150;

std::int64_t resident_bytes() {
  std::int64_t total = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A raw peer: says anything, and reads what it is answered.
class attacker {
 public:
  attacker(zmq::context_t& context, const std::string& address, core::greeting self, std::string taken,
           std::uint64_t seed)
      : say(seed), self_(std::move(self)), taken_(std::move(taken)), socket_(context, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvhwm, 0);
    socket_.connect(address);
  }

  // `frames_a_block` frames, and all answers to them.
  void attack() {
    for (std::size_t i = 0; i < frames_a_block; ++i) {
      strike();
    }
    say.forget();
    REQUIRE(settle_down());
  }

  // Waits until the other end has read everything that was sent: an answer to a session that was never made. False if
  // it doesn't come in time.
  bool settle_down() {
    ++token_;
    answered_ = false;
    core::frame f;
    if (is_sender()) {
      f.emplace<core::sender_heartbeat>().session = token_;
    } else {
      f.emplace<core::consumer_heartbeat>().session = token_;
    }
    send(f);
    const auto end = std::chrono::steady_clock::now() + patience;
    do {
      zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
      (void)zmq_poll(&item, 1, 100);
      read_answers();
    } while (!answered_ && std::chrono::steady_clock::now() < end);
    return answered_;
  }

  void send(const core::frame& f) {
    wire::encode(f, scratch_);
    send(scratch_);
  }
  void send(std::string_view bytes) { socket_.send(zmq::buffer(bytes)); }

  hostile_frames say;
  std::uint64_t refused = 0, waits = 0, unreadable = 0;

 private:
  [[nodiscard]] bool is_sender() const { return self_.role() == core::role::sender; }

  void strike() {
    switch (say.below(8)) {
      case 0:
      case 1:
      case 2:
        if (say.session == 0) {
          send(say.hello(self_));
        } else {
          send(is_sender() ? say.from_sender() : say.from_consumer());
        }
        break;
      case 3:
        if (say.rarely(20)) {
          send(say.odd_hello(self_, taken_));
        } else {
          send(say.beat(self_.role()));
        }
        break;
      case 4:
        if (say.rarely(3)) {
          // Several parts.
          socket_.send(zmq::buffer(say.bytes()), zmq::send_flags::sndmore);
          if (say.coin()) {
            socket_.send(zmq::message_t(), zmq::send_flags::sndmore);
          }
        }
        send(say.rarely(3) ? std::string() : say.bytes());
        break;
      default:
        send(say.bytes(say.rarely(300) ? 1U << 20U : 2'000));
        break;
    }
  }

  void read_answers() {
    zmq::message_t m;
    while (socket_.recv(m, zmq::recv_flags::dontwait)) {
      core::frame f;
      const auto bad = wire::decode({static_cast<const char*>(m.data()), m.size()}, f);
      REQUIRE(!bad);
      say.hear(f);
      if (const auto* e = std::get_if<core::error>(&f)) {
        unreadable += e->code == core::error_code::unreadable ? 1 : 0;
        answered_ = answered_ || e->session == token_;
      }
      refused += std::holds_alternative<core::refused>(f) ? 1 : 0;
      waits += std::holds_alternative<core::wait>(f) ? 1 : 0;
    }
  }

  core::greeting self_;
  std::string taken_;
  zmq::socket_t socket_;
  std::string scratch_;
  core::session_id token_ = 1'000'000'000'000'000;  // of a session that never was
  bool answered_ = false;
};

// One message after each block of an attack.
class healthy_traffic {
 public:
  explicit healthy_traffic(sender& up) : up_(up) {}

  void beside(attacker& a, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto sent = up_.send(letter("healthy-" + std::to_string(sent_++)));
      REQUIRE(sent);
      a.attack();
      const auto* m = sent.ticket.wait_for(patience);
      REQUIRE(m != nullptr);
      REQUIRE(m->state == final_state::accepted);
      slowest_ =
          std::max<duration>(slowest_, std::chrono::duration_cast<duration>(std::chrono::steady_clock::now() - start));
    }
  }
  [[nodiscard]] duration slowest() const { return slowest_; }
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  sender& up_;
  std::size_t sent_ = 0;
  duration slowest_{};
};

// Counts the effects of the healthy sender's messages, by key.
class effect_counts {
 public:
  handler counting() {
    return [this](const delivery& d, context&) {
      if (d.key().starts_with("healthy-")) {
        const std::lock_guard lock(mutex_);
        ++effects_[std::string(d.key())];
      }
      return accept();
    };
  }
  void check(std::size_t keys) {
    const std::lock_guard lock(mutex_);
    CHECK(effects_.size() == keys);
    CHECK(std::all_of(effects_.begin(), effects_.end(), [](const auto& e) { return e.second == 1; }));
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> effects_;
};

void attack_beside(attacker& a, healthy_traffic& traffic) {
  traffic.beside(a, warm_up_blocks);
  const auto before = resident_bytes();
  traffic.beside(a, blocks);
  const auto growth = resident_bytes() - before;
  INFO("resident memory grew by " << growth / 1024 << " KiB, the slowest message took "
                                  << traffic.slowest().count() / 1000 << " ms");
  CHECK((sanitized || growth < growth_max));
  CHECK(traffic.slowest() < slowest_allowed);
  // Answered.
  CHECK(a.say.sessions > 0);
  CHECK(a.say.errors > int(blocks));
  CHECK(a.unreadable > blocks);
  CHECK(a.refused > 0);
  CHECK(a.waits > 0);
}

core::greeting greeting_of(std::variant<core::sender_greeting, core::consumer_greeting> part) {
  core::greeting g;
  g.logical_id = "hostile";
  g.instance = 66;
  g.part = part;
  return g;
}

}  // namespace

TEST_CASE("a hundred thousand hostile frames at a sender are counted and answered, and its consumer notices nothing",
          "[integration]") {
  zmq::context_t outside;
  effect_counts effects;
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.logical_id = "worker";
  co.inbox_max = 10'000;
  consumer down(co, effects.counting());
  down.start();
  REQUIRE(eventually([&] { return up.status().peers.size() == 1; }));

  // It takes no message, so none can get lost in it.
  attacker a(outside, up.addresses().at(0), greeting_of(core::consumer_greeting{3U, false, true, 0}), "worker", 1);
  healthy_traffic traffic(up);
  attack_beside(a, traffic);

  CHECK(a.say.handed_over == 0);
  const auto s = up.status();
  CHECK(s.bad_frames > blocks);  // counted
  CHECK(s.accepted == traffic.sent());
  CHECK(s.first_attempt_successes == traffic.sent());
  effects.check(traffic.sent());
  CHECK(down.status().lost_leases == 0);
  CHECK(down.status().refused.empty());
  CHECK(down.stop(10s).clean);
  CHECK(up.close(10s).clean);
}

TEST_CASE("a hundred thousand hostile frames at a consumer are counted and answered, and its sender notices nothing",
          "[integration]") {
  zmq::context_t outside;
  effect_counts effects;
  auto co = receiving(bind("tcp://127.0.0.1:*"));
  co.concurrency = 4;
  co.inbox_max = 100'000;
  consumer down(co, effects.counting());
  down.start();
  auto so = sending(connect(down.addresses().at(0)));
  so.logical_id = "orders";
  sender up(so);
  REQUIRE(eventually([&] { return up.status().peers.size() == 1; }));

  attacker a(outside, down.addresses().at(0), greeting_of(core::sender_greeting{666, 1, 1, 100ms, 1s}), "orders", 2);
  healthy_traffic traffic(up);
  attack_beside(a, traffic);

  const auto s = down.status();
  CHECK(s.bad_frames > blocks);  // counted
  CHECK(s.malformed > 0);
  CHECK(up.status().accepted == traffic.sent());
  CHECK(up.status().first_attempt_successes == traffic.sent());
  CHECK(up.status().peers_lost == 0);
  CHECK(up.status().refused_by_peer.empty());
  effects.check(traffic.sent());
  CHECK(up.close(10s).clean);
  (void)down.stop(10s);  // not clean: the attacker confirms nothing
}

// libzmq cuts its connection; nobody else's.
TEST_CASE("a frame above the limit costs its sender the connection and nobody else anything", "[integration]") {
  zmq::context_t outside;
  effect_counts effects;
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), effects.counting());
  down.start();
  REQUIRE(eventually([&] { return up.status().peers.size() == 1; }));
  const std::string oversized(32U << 20U, 'x');
  const auto self = greeting_of(core::consumer_greeting{3U, false, true, 0});
  for (int i = 0; i < 3; ++i) {
    attacker a(outside, up.addresses().at(0), self, "worker", 3);
    REQUIRE(a.settle_down());
    a.send(oversized);
    attacker next(outside, up.addresses().at(0), self, "worker", 4);
    CHECK(next.settle_down());
    CHECK(outcome_of(up.send(letter("healthy-" + std::to_string(i))).ticket).state == final_state::accepted);
  }
  effects.check(3);
  CHECK(up.status().peers_lost == 0);
  CHECK(down.stop(10s).clean);
  CHECK(up.close(10s).clean);
}

}  // namespace onay::test
