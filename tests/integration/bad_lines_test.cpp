// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Lines that lose, double, delay and reorder frames, and strangers at the port.
#include "integration/fixture.hpp"

#include "shell/access.hpp"

#include <zmq.hpp>

#include <deque>
#include <map>
#include <random>

namespace onay::test {

namespace {

// Each frame is lost, sent twice, or held back for a moment, so that later ones overtake it.
class bad_line final : public shell::link_filter {
 public:
  explicit bad_line(unsigned seed) : random_(seed) {}

  void submit(time_point now, shell::filtered_frame f) override {
    const auto luck = random_() % 100;
    if (luck < 5) {
      ++lost;
      return;
    }
    if (luck < 10) {
      held_.emplace(now + std::chrono::microseconds(random_() % 20'000), f);
    }
    held_.emplace(luck < 20 ? now + std::chrono::microseconds(random_() % 20'000) : now, std::move(f));
  }

  std::optional<shell::filtered_frame> poll(time_point now) override {
    if (held_.empty() || held_.begin()->first > now) {
      return {};
    }
    auto f = std::move(held_.begin()->second);
    held_.erase(held_.begin());
    return f;
  }

  [[nodiscard]] time_point next_deadline() const override {
    return held_.empty() ? time_point::max() : held_.begin()->first;
  }

  std::atomic<int> lost{0};

 private:
  std::minstd_rand random_;
  std::multimap<time_point, shell::filtered_frame> held_;
};

}  // namespace

TEST_CASE("a line that loses, doubles and reorders frames loses no message and runs none twice", "[integration]") {
  constexpr int count = 2'000;
  bad_line up_line(1);
  bad_line down_line(2);
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.heartbeat = 20ms;
  so.lease = 5s;
  const auto up = shell::access::make(so, up_line);
  auto co = receiving(connect(up->addresses().at(0)));
  co.concurrency = 2;
  co.credit_max = 64;  // many frames
  std::mutex mutex;
  std::map<std::string, int> handled;
  const auto down = shell::access::make(
      co,
      [&](const delivery& d, context&) {
        const std::lock_guard lock(mutex);
        ++handled[std::string(d.key())];
        return accept("ok");
      },
      down_line);
  down->start();
  std::vector<receipt> receipts;
  for (int i = 0; i < count; ++i) {
    receipts.push_back(up->send(letter(std::to_string(i))).ticket);
  }
  int accepted = 0;
  for (const auto& r : receipts) {
    const auto* m = r.wait_for(patience);
    accepted += m != nullptr && m->state == final_state::accepted && m->result == "ok" ? 1 : 0;
  }
  CHECK(accepted == count);
  CHECK(up_line.lost + down_line.lost > 0);
  CHECK(down->stop(10s).running == 0);
  const std::lock_guard lock(mutex);
  CHECK(handled.size() == std::size_t(count));
  for (const auto& [key, times] : handled) {
    CHECK(times == 1);
  }
}

TEST_CASE("strangers at the port are counted and disturb nobody", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), accepting());
  down.start();
  CHECK(outcome_of(up.send(letter("before")).ticket).state == final_state::accepted);

  zmq::context_t context;
  zmq::socket_t stranger(context, zmq::socket_type::dealer);
  stranger.set(zmq::sockopt::linger, 1'000);
  stranger.connect(up.addresses().at(0));
  stranger.send(zmq::str_buffer("nonsense"), zmq::send_flags::none);
  stranger.send(zmq::str_buffer(""), zmq::send_flags::none);
  stranger.send(zmq::str_buffer("two"), zmq::send_flags::sndmore);
  stranger.send(zmq::str_buffer("parts"), zmq::send_flags::none);
  CHECK(eventually([&] { return up.status().bad_frames >= 3; }));
  // It is told so.
  stranger.set(zmq::sockopt::rcvtimeo, 10'000);
  zmq::message_t answer;
  CHECK(stranger.recv(answer).has_value());

  CHECK(outcome_of(up.send(letter("after")).ticket).state == final_state::accepted);
  CHECK(up.status().peers_lost == 0);
}

TEST_CASE("a consumer that is destroyed without a word is replaced by the next one", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.heartbeat = 20ms;
  so.lease = 200ms;
  const auto up = std::make_unique<sender>(so);
  // Its BYE and everything after the first moment is swallowed.
  struct mute final : shell::link_filter {
    std::atomic<bool> on{false};
    std::deque<shell::filtered_frame> frames;
    void submit(time_point, shell::filtered_frame f) override {
      if (!on) {
        frames.push_back(std::move(f));
      }
    }
    std::optional<shell::filtered_frame> poll(time_point) override {
      if (frames.empty()) {
        return {};
      }
      auto f = std::move(frames.front());
      frames.pop_front();
      return f;
    }
    [[nodiscard]] time_point next_deadline() const override { return time_point::max(); }
  } silence;
  auto first = shell::access::make(
      receiving(connect(up->addresses().at(0))), [&](const delivery&, context&) { return accept("first"); }, silence);
  first->start();
  // From here on it has credit: what is sent next goes to it.
  REQUIRE(outcome_of(up->send(letter("before")).ticket).result == "first");
  std::vector<receipt> receipts;
  silence.on = true;
  for (int i = 0; i < 10; ++i) {
    receipts.push_back(up->send(letter(std::to_string(i))).ticket);
  }
  first->stop(0s);
  first.reset();
  consumer second(receiving(connect(up->addresses().at(0))),
                  [](const delivery&, context&) { return accept("second"); });
  second.start();
  for (const auto& r : receipts) {
    CHECK(outcome_of(r).result == "second");
  }
  CHECK(eventually([&] { return up->status().peers_lost == 1; }));
}

}  // namespace onay::test
