// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// A sender's own dead-letter endpoint: what no connected consumer can bury.
#include "integration/fixture.hpp"

#include <zmq.hpp>

namespace onay::test {

namespace {

// A collector, and the letters that it has confirmed.
class collected {
 public:
  explicit collected(endpoint where)
      : collector_(
            [&] {
              auto o = receiving(std::move(where));
              o.dead_letters = collect{};
              return o;
            }(),
            [this](const delivery& d, context&) {
              const std::lock_guard lock(mutex_);
              letters_.push_back(read_dead_letter(d.payload()).value());
              return accept();
            }) {
    collector_.start();
  }
  [[nodiscard]] std::string address() const { return collector_.addresses().at(0); }
  [[nodiscard]] std::vector<dead_letter> letters() const {
    const std::lock_guard lock(mutex_);
    return letters_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<dead_letter> letters_;
  consumer collector_;
};

std::string free_address() {
  zmq::context_t context;
  zmq::socket_t probe(context, zmq::socket_type::router);
  probe.bind("tcp://127.0.0.1:*");
  return probe.get(zmq::sockopt::last_endpoint);
}

sender_options burying(const std::string& collector) {
  auto o = sending(bind("tcp://127.0.0.1:*"));
  o.logical_id = "orders";
  o.heartbeat = 20ms;
  o.lease = 200ms;
  o.dead_letters = connect(collector);
  return o;
}

}  // namespace

TEST_CASE("a message that grows too old while no consumer is there ends at the sender's own collector",
          "[integration]") {
  const collected there(bind("tcp://127.0.0.1:*"));
  sender up(burying(there.address()));
  auto m = letter("a", "the bytes");
  m.headers = {{"trace", "t1"}};
  m.deadline = 50ms;
  const auto end = outcome_of(up.send(m).ticket);
  CHECK(end.state == final_state::dead_lettered);
  CHECK(end.why == reason::too_old);
  CHECK(end.record.attempts == 0);
  const auto letters = there.letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].origin == "orders");
  CHECK(letters[0].why == reason::too_old);
  CHECK(letters[0].payload == "the bytes");
  CHECK(letters[0].headers == std::vector<header>{{"trace", "t1"}});
  CHECK(letters[0].record.operation_key == "a");
  CHECK(up.close(10s).clean);
}

TEST_CASE("a message larger than every consumer takes ends at the sender's own collector and holds up nobody",
          "[integration]") {
  const collected there(bind("tcp://127.0.0.1:*"));
  sender up(burying(there.address()));
  auto co = receiving(connect(up.addresses().at(0)));
  co.payload_max = {1'000};
  consumer down(co, accepting());
  down.start();
  REQUIRE(eventually([&] { return up.status().peers.size() == 1; }));
  const auto large = up.send(letter("large", std::string(500'000, 'x')));
  const auto small = up.send(letter("small"));
  CHECK(outcome_of(small.ticket).state == final_state::accepted);
  const auto end = outcome_of(large.ticket);
  CHECK(end.state == final_state::dead_lettered);
  CHECK(end.why == reason::too_large);
  const auto letters = there.letters();
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].payload == std::string(500'000, 'x'));
}

TEST_CASE("a sender's own dead letters wait for their collector, and are unknown if it never comes", "[integration]") {
  const auto address = free_address();
  sender up(burying(address));
  auto m = letter("a");
  m.deadline = 20ms;
  const auto first = up.send(m).ticket;
  REQUIRE(eventually([&] { return up.status().overdue == 1; }));
  {
    const collected late(bind(address));
    CHECK(outcome_of(first).state == final_state::dead_lettered);
    CHECK(late.letters().size() == 1);
  }
  m = letter("b");
  m.deadline = 20ms;
  const auto second = up.send(m).ticket;
  CHECK(!up.close(200ms).clean);
  CHECK(outcome_of(second).state == final_state::unknown);
}

}  // namespace onay::test
