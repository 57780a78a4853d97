// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Messages from one end to the other, over every transport and both ways round.
#include "integration/fixture.hpp"

#include <zmq.hpp>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace onay::test {

namespace {

handler answering() {
  return [](const delivery& d, context&) { return accept("got " + std::string(d.payload())); };
}

void exchange_one(sender& up, consumer& down) {
  down.start();
  const auto sent = up.send(letter("a", "hello"));
  REQUIRE(sent);
  const auto end = outcome_of(sent.ticket);
  CHECK(end.state == final_state::accepted);
  CHECK(end.result == "got hello");
  CHECK(down.stop(10s).clean);
  CHECK(up.close(10s).clean);
}

std::uint64_t sum_of(std::string_view bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t(1469598103934665603U),
                         [](std::uint64_t h, char c) { return (h ^ std::uint8_t(c)) * 1099511628211U; });
}

}  // namespace

TEST_CASE("a message is accepted with its result when the sender binds", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), answering());
  exchange_one(up, down);
}

TEST_CASE("a message is accepted with its result when the consumer binds", "[integration]") {
  consumer down(receiving(bind("tcp://127.0.0.1:*")), answering());
  sender up(sending(connect(down.addresses().at(0))));
  exchange_one(up, down);
}

TEST_CASE("a message is accepted with its result over inproc, whoever binds", "[integration]") {
  zmq::context_t context;
  SECTION("sender") {
    sender up(context, sending(bind("inproc://orders")));
    consumer down(context, receiving(connect("inproc://orders")), answering());
    exchange_one(up, down);
  }
  SECTION("consumer") {
    consumer down(context, receiving(bind("inproc://orders")), answering());
    sender up(context, sending(connect("inproc://orders")));
    exchange_one(up, down);
  }
}

TEST_CASE("a message is accepted with its result over ipc", "[integration]") {
  const auto path = "ipc:///tmp/onay-delivering-test-" + std::to_string(getpid());
  sender up(sending(bind(path)));
  consumer down(receiving(connect(path)), answering());
  exchange_one(up, down);
}

TEST_CASE("a sender that starts after its consumer is found", "[integration]") {
  // A port that was free a moment ago.
  std::string address;
  {
    const sender probe(sending(bind("tcp://127.0.0.1:*")));
    address = probe.addresses().at(0);
  }
  consumer down(receiving(connect(address)), answering());
  down.start();
  CHECK(down.status().why_idle == idle_reason::not_connected);
  sender up(sending(bind(address)));
  exchange_one(up, down);
}

TEST_CASE("headers, key and id reach the handler as they were sent", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), [](const delivery& d, context& c) {
    std::string text(d.key());
    for (const auto& h : d.headers()) {
      text += "|" + std::string(h.name) + "=" + std::string(h.value);
    }
    text += "|" + std::string(d.header("b").value_or("none")) + "|" + std::string(d.header("c").value_or("none"));
    text += "|" + std::to_string(d.id().number) + "|" + std::to_string(c.attempt());
    return accept(text);
  });
  down.start();
  auto m = letter(std::string("k\0y", 3), "");
  m.headers = {{"a", "1"}, {"b", ""}, {"a", "2"}};
  const auto sent = up.send(m);
  CHECK(outcome_of(sent.ticket).result == std::string("k\0y", 3) + "|a=1|b=|a=2||none|1|1");
}

TEST_CASE("ten thousand messages over four workers are each accepted once", "[integration]") {
  constexpr int count = 10'000;
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.unsettled_max = 4'096;
  sender up(so);
  std::mutex mutex;
  std::map<std::string, int> handled;
  std::vector<std::unique_ptr<consumer>> workers;
  for (int i = 0; i < 4; ++i) {
    auto co = receiving(connect(up.addresses().at(0)));
    co.concurrency = 2;
    workers.push_back(std::make_unique<consumer>(co, [&](const delivery& d, context&) {
      const std::lock_guard lock(mutex);
      ++handled[std::string(d.key())];
      return accept();
    }));
    workers.back()->start();
  }
  std::vector<receipt> receipts;
  for (int i = 0; i < count; ++i) {
    auto sent = up.send_for(letter(std::to_string(i)), patience);
    REQUIRE(sent);
    receipts.push_back(sent.ticket);
  }
  const auto accepted = std::count_if(receipts.begin(), receipts.end(), [](const receipt& r) {
    const auto* m = r.wait_for(patience);
    return m != nullptr && m->state == final_state::accepted;
  });
  CHECK(accepted == count);
  {
    const std::lock_guard lock(mutex);
    CHECK(handled.size() == std::size_t(count));
    CHECK(std::all_of(handled.begin(), handled.end(), [](const auto& h) { return h.second == 1; }));
  }
  CHECK(up.wait_idle(patience));
  const auto s = up.status();
  CHECK(s.sent == std::uint64_t(count));
  CHECK(s.accepted == std::uint64_t(count));
  CHECK(s.first_attempt_successes == std::uint64_t(count));
  CHECK(s.unsettled == 0);
  CHECK(s.peers.size() == 4);
  for (auto& w : workers) {
    CHECK(w->stop(10s).clean);
  }
}

// C49: views point into the received frame, which must stay while others come and go.
TEST_CASE("what a delivery gives stays valid as long as it does", "[integration]") {
  constexpr int count = 1'000;
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.concurrency = 64;
  std::mutex mutex;
  std::vector<std::pair<delivery, std::string_view>> kept;
  std::atomic<int> wrong{0};
  const auto settle_one = [&](std::pair<delivery, std::string_view> k) {
    const auto claimed = std::stoull(std::string(k.first.key().substr(k.first.key().find(':') + 1)));
    if (sum_of(k.second) != claimed || k.second.data() != k.first.payload().data()) {
      ++wrong;
    }
    std::move(k.first).settle(accept());
  };
  consumer down(co, [&](delivery d, context) {
    std::vector<std::pair<delivery, std::string_view>> due;
    {
      const std::lock_guard lock(mutex);
      const auto payload = d.payload();
      kept.emplace_back(std::move(d), payload);
      if (kept.size() >= 48) {
        due.swap(kept);
      }
    }
    std::thread([&settle_one, held = std::move(due)]() mutable {
      for (auto& k : held) {
        settle_one(std::move(k));
      }
    }).join();
  });
  down.start();
  std::vector<receipt> receipts;
  for (int i = 0; i < count; ++i) {
    const std::string payload(std::size_t(1 + i * 37 % 20'000), char('a' + i % 26));
    receipts.push_back(up.send(letter(std::to_string(i) + ":" + std::to_string(sum_of(payload)), payload)).ticket);
  }
  // The last ones never make a full batch.
  CHECK(eventually([&] {
    std::vector<std::pair<delivery, std::string_view>> rest;
    if (const auto s = up.status(); s.accepted == std::uint64_t(count)) {
      return true;
    } else if (s.accepted >= std::uint64_t(count - 48)) {
      const std::lock_guard lock(mutex);
      rest.swap(kept);
    }
    for (auto& k : rest) {
      settle_one(std::move(k));
    }
    return false;
  }));
  for (const auto& r : receipts) {
    CHECK(outcome_of(r).state == final_state::accepted);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a message of eight megabytes arrives whole", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  const std::string payload(8U << 20U, 'x');
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery& d, context&) {
    return d.payload() == payload ? accept("same") : failure(error_class::permanent, "differs");
  });
  down.start();
  CHECK(outcome_of(up.send(letter("large", payload)).ticket).result == "same");
}

TEST_CASE("one consumer takes messages of two senders", "[integration]") {
  sender a(sending(bind("tcp://127.0.0.1:*")));
  sender b(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(a.addresses().at(0)));
  co.endpoints.push_back(connect(b.addresses().at(0)));
  consumer down(co, answering());
  down.start();
  CHECK(outcome_of(a.send(letter("1", "a")).ticket).result == "got a");
  CHECK(outcome_of(b.send(letter("2", "b")).ticket).result == "got b");
}

}  // namespace onay::test
