// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The sender's limits, receipts, callbacks and closing.
#include "integration/fixture.hpp"

#include <stdexcept>

namespace onay::test {

TEST_CASE("send refuses what breaks its limits", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.payload_max = {100};
  so.headers_max = {50};
  sender up(so);
  CHECK(up.send(letter("")).error == send_error::missing_key);
  CHECK(up.send(letter(std::string(256, 'k'))).error == send_error::key_too_long);
  CHECK(up.send(letter("k", std::string(101, 'p'))).error == send_error::too_large);
  auto m = letter("k");
  m.headers = {{"name", std::string(50, 'v')}};
  CHECK(up.send(m).error == send_error::too_large);
  m = letter("k");
  m.deadline = 0s;
  CHECK(up.send(m).error == send_error::bad_deadline);
  CHECK(up.send(letter(std::string(255, 'k'), std::string(100, 'p'))));
  CHECK(up.close(0s).unknown == 1);
  CHECK(up.send(letter("late")).error == send_error::closed);
}

TEST_CASE("try_send says would_block at the limit and recovers", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.unsettled_max = 3;
  sender up(so);
  std::vector<receipt> receipts;
  for (int i = 0; i < 3; ++i) {
    auto sent = up.try_send(letter(std::to_string(i)));
    REQUIRE(sent);
    receipts.push_back(sent.ticket);
  }
  CHECK(up.try_send(letter("one too many")).error == send_error::would_block);
  CHECK(up.send_for(letter("one too many"), 20ms).error == send_error::would_block);
  CHECK_FALSE(up.wait_idle(1ms));

  consumer down(receiving(connect(up.addresses().at(0))), accepting());
  down.start();
  auto waited = up.send_for(letter("now there is room"), patience);
  REQUIRE(waited);
  receipts.push_back(waited.ticket);
  for (const auto& r : receipts) {
    CHECK(outcome_of(r).state == final_state::accepted);
  }
  CHECK(up.wait_idle(patience));
  CHECK(up.try_send(letter("again")));
}

TEST_CASE("bytes are a limit too, but one message always passes", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.unsettled_bytes_max = {1'000};
  sender up(so);
  auto first = up.try_send(letter("large", std::string(5'000, 'x')));
  REQUIRE(first);
  CHECK(up.try_send(letter("small", "y")).error == send_error::would_block);
  consumer down(receiving(connect(up.addresses().at(0))), accepting());
  down.start();
  CHECK(outcome_of(first.ticket).state == final_state::accepted);
  CHECK(up.send_for(letter("small", "y"), patience));
}

TEST_CASE("a send that waits for room ends when the sender is closed", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.unsettled_max = 1;
  sender up(so);
  REQUIRE(up.try_send(letter("a")));
  send_error error = send_error::none;
  std::thread waiting([&] { error = up.send(letter("b")).error; });
  CHECK(up.close(10ms).unknown == 1);
  waiting.join();
  CHECK(error == send_error::closed);
}

TEST_CASE("receipts of a closed sender end as unknown", "[integration]") {
  receipt kept;
  {
    sender up(sending(bind("tcp://127.0.0.1:*")));
    kept = up.send(letter("a")).ticket;
    CHECK(kept.poll() == nullptr);
    CHECK(kept.wait_for(1ms) == nullptr);
    const auto report = up.close(0s);
    CHECK_FALSE(report.clean);
    CHECK(report.unknown == 1);
    CHECK(up.close(10s).unknown == 1);
    CHECK(up.status().sent == 1);
  }
  REQUIRE(kept.poll() != nullptr);
  CHECK(kept.poll()->state == final_state::unknown);
  CHECK(kept.wait().state == final_state::unknown);
}

TEST_CASE("callbacks run once, in order, and what they throw is counted", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event go;
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context&) {
    go.wait();
    return accept("result");
  });
  down.start();
  const auto sent = up.send(letter("a"));
  std::mutex mutex;
  std::vector<int> order;
  event last;
  for (int i = 0; i < 3; ++i) {
    sent->on_settled([&, i](const settled_message& m) {
      {
        const std::lock_guard lock(mutex);
        order.push_back(m.result == "result" ? i : -1);
      }
      if (i == 1) {
        throw std::runtime_error("the user's mistake");
      }
      if (i == 2) {
        last.set();
      }
    });
  }
  go.set();
  REQUIRE(last.wait());
  CHECK(up.wait_idle(patience));
  {
    const std::lock_guard lock(mutex);
    CHECK(order == std::vector<int>{0, 1, 2});
  }
  CHECK(up.status().callback_failures == 1);
  bool at_once = false;
  sent->on_settled([&](const settled_message&) { at_once = true; });
  CHECK(at_once);
}

TEST_CASE("a message counts as unsettled until its callbacks have run", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.unsettled_max = 1;
  sender up(so);
  const auto sent = up.send(letter("a"));
  event running;
  event go;
  sent->on_settled([&](const settled_message&) {
    running.set();
    go.wait();
  });
  consumer down(receiving(connect(up.addresses().at(0))), accepting());
  down.start();
  REQUIRE(running.wait());
  CHECK(up.try_send(letter("b")).error == send_error::would_block);
  CHECK_FALSE(up.wait_idle(0s));
  go.set();
  CHECK(up.send_for(letter("b"), patience));
}

TEST_CASE("a sender may be destroyed by its own callback", "[integration]") {
  auto up = std::make_unique<sender>(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up->addresses().at(0))), accepting());
  const auto sent = up->send(letter("a"));
  event gone;
  sent->on_settled([&](const settled_message&) {
    up.reset();
    gone.set();
  });
  down.start();
  CHECK(gone.wait());
}

TEST_CASE("close waits for what is unsettled", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), accepting());
  down.start();
  for (int i = 0; i < 500; ++i) {
    REQUIRE(up.send(letter(std::to_string(i))));
  }
  CHECK(up.close(patience).clean);
  CHECK(up.status().accepted == 500);
}

}  // namespace onay::test
