// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Starting, pausing, stopping and destroying, from everywhere.
#include "integration/fixture.hpp"

#include <dirent.h>
#include <unistd.h>

#include <zmq.hpp>

#include <fstream>

namespace onay::test {

namespace {

std::size_t entries(const char* directory) {
  std::size_t count = 0;
  auto* d = opendir(directory);
  while (d != nullptr && readdir(d) != nullptr) {
    ++count;
  }
  closedir(d);
  return count;
}

std::size_t descriptors() { return entries("/proc/self/fd"); }
std::size_t threads() { return entries("/proc/self/task"); }

}  // namespace

TEST_CASE("a stop reports what it left, and is clean when nothing is", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), accepting());
  down.start();
  for (int i = 0; i < 200; ++i) {
    CHECK(outcome_of(up.send(letter(std::to_string(i))).ticket).state == final_state::accepted);
  }
  const auto report = down.stop(10s);
  CHECK(report.clean);
  CHECK(report.running == 0);
  CHECK(report.error.empty());
  CHECK(down.stop(0s).clean);
  CHECK(down.status().why_idle == idle_reason::stopped);
  CHECK(down.status().accepted == 200);
}

// C35
TEST_CASE("what was handled before a stop is acknowledged, and the rest is handed back", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event some;
  std::atomic<int> handled{0};
  auto first = std::make_unique<consumer>(receiving(connect(up.addresses().at(0))), [&](const delivery&, context&) {
    if (++handled == 20) {
      some.set();
    }
    return accept("first");
  });
  first->start();
  std::vector<receipt> receipts;
  for (int i = 0; i < 2'000; ++i) {
    receipts.push_back(up.send(letter(std::to_string(i))).ticket);
  }
  REQUIRE(some.wait());
  CHECK(first->stop(10s).clean);
  first.reset();
  const int before = handled;
  std::atomic<int> again{0};
  consumer second(receiving(connect(up.addresses().at(0))), [&](const delivery&, context& c) {
    ++again;
    return c.attempt() == 1 ? accept("second") : failure(error_class::permanent, "an attempt was charged");
  });
  second.start();
  int by_first = 0;
  for (const auto& r : receipts) {
    const auto end = outcome_of(r);
    REQUIRE(end.state == final_state::accepted);
    by_first += end.result == "first" ? 1 : 0;
  }
  CHECK(by_first == before);
  CHECK(again == 2'000 - before);
}

// C36a
TEST_CASE("a stop ends in time although a handler ignores it", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event started;
  event go;
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context&) {
    started.set();
    go.wait();
    return accept();
  });
  down.start();
  const auto sent = up.send(letter("a"));
  REQUIRE(started.wait());
  const auto begin = std::chrono::steady_clock::now();
  const auto report = down.stop(200ms);
  CHECK(std::chrono::steady_clock::now() - begin < 1s);
  CHECK_FALSE(report.clean);
  CHECK(report.running == 1);
  CHECK(sent->poll() == nullptr);
  CHECK(down.status().running == 1);
  go.set();
}

TEST_CASE("a second, shorter stop cuts the first one short", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event started;
  event go;
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context& c) {
    started.set();
    const std::stop_callback on_stop(c.stop_token(), [&] { go.set(); });
    go.wait();
    return accept();
  });
  down.start();
  REQUIRE(up.send(letter("a")));
  REQUIRE(started.wait());
  down.request_stop(1h);
  CHECK(down.status().why_idle == idle_reason::busy);
  down.stop(0s);
  CHECK(go.wait());
}

// C37
TEST_CASE("a handler may stop its own consumer", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer* self = nullptr;
  std::atomic<bool> clean{true};
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context&) {
    (void)self->status();
    clean = self->stop(10s).clean;
    return accept("the last one");
  });
  self = &down;
  const auto first = up.send(letter("first"));
  const auto second = up.send(letter("second"));
  const auto report = down.run();
  CHECK_FALSE(clean);
  CHECK(report.clean);
  CHECK(outcome_of(first.ticket).result == "the last one");
  CHECK(second->poll() == nullptr);
}

TEST_CASE("a handler may destroy its own consumer", "[integration]") {
  zmq::context_t context;
  sender up(context, sending(bind("inproc://orders")));
  const bool async = GENERATE(false, true);
  std::unique_ptr<consumer> down;
  event destroyed;
  if (async) {
    down = std::make_unique<consumer>(context, receiving(connect("inproc://orders")), [&](delivery d, onay::context) {
      down.reset();
      destroyed.set();
      std::move(d).settle(accept());
    });
  } else {
    down = std::make_unique<consumer>(context, receiving(connect("inproc://orders")),
                                      [&](const delivery&, onay::context&) {
                                        down.reset();
                                        destroyed.set();
                                        return accept();
                                      });
  }
  const auto before = threads();
  down->start();
  REQUIRE(up.send(letter("a")));
  REQUIRE(destroyed.wait(5s));
  CHECK(eventually([&] { return threads() <= before; }));
  CHECK(eventually([&] { return up.status().peers.empty() || !up.status().peers[0].connected; }));
}

TEST_CASE("pause starts nothing until resume, and what runs goes on", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event started;
  event go;
  std::atomic<int> starts{0};
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context&) {
    if (++starts == 1) {
      started.set();
      go.wait();
    }
    return accept();
  });
  down.start();
  const auto first = up.send(letter("first"));
  std::vector<receipt> rest;
  for (int i = 0; i < 100; ++i) {
    rest.push_back(up.send(letter(std::to_string(i))).ticket);
  }
  REQUIRE(started.wait());
  down.pause();
  go.set();
  CHECK(outcome_of(first.ticket).state == final_state::accepted);
  REQUIRE(eventually([&] { return down.status().why_idle == idle_reason::paused; }));
  CHECK(rest[0].wait_for(50ms) == nullptr);
  CHECK(starts == 1);
  down.resume();
  for (const auto& r : rest) {
    CHECK(outcome_of(r).state == final_state::accepted);
  }
  CHECK(starts == 101);
}

TEST_CASE("a consumer may be destroyed in any state", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  SECTION("never started") {
    const consumer down(receiving(connect(up.addresses().at(0))), accepting());
    CHECK(down.status().why_idle == idle_reason::stopped);
  }
  SECTION("stopped without a start") {
    consumer down(receiving(bind("tcp://127.0.0.1:*")), accepting());
    const auto address = down.addresses().at(0);
    CHECK(down.stop(10s).clean);
    down.start();
    // The address becomes free; ZeroMQ closes sockets behind our back, so not at the very moment.
    CHECK(eventually([&] {
      try {
        const consumer other(receiving(bind(address)), accepting());
        return true;
      } catch (const setup_error&) {
        return false;
      }
    }));
  }
  SECTION("running") {
    consumer down(receiving(connect(up.addresses().at(0))), accepting());
    down.start();
  }
  SECTION("paused before the start") {
    consumer down(receiving(connect(up.addresses().at(0))), accepting());
    down.pause();
    down.start();
    const auto sent = up.send(letter("a"));
    REQUIRE(eventually([&] { return down.status().queued == 1; }));
    CHECK(sent->poll() == nullptr);
  }
}

// C43a
TEST_CASE("a port in use is a set-up error that names the endpoint", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  const auto address = up.addresses().at(0);
  const auto begin = std::chrono::steady_clock::now();
  try {
    const sender other(sending(bind(address)));
    FAIL("two senders on one port");
  } catch (const setup_error& e) {
    const std::string what = e.what();
    CHECK(what.find(address) != std::string::npos);
    CHECK(what.find("Address already in use") != std::string::npos);
    CHECK(what.find("trying again later makes sense") != std::string::npos);
  }
  auto co = receiving(connect("tcp://127.0.0.1:1"));
  co.dead_letters = dead_letter_to{bind(address)};
  CHECK_THROWS_AS(consumer(co, accepting()), setup_error);
  CHECK(std::chrono::steady_clock::now() - begin < 2s);
  const sender elsewhere(sending(bind("tcp://127.0.0.1:*")));
}

// C43c
TEST_CASE("two hundred start and stop cycles leave no descriptors and no threads", "[integration]") {
  const auto cycle = [](bool with_traffic) {
    sender up(sending(bind("tcp://127.0.0.1:*")));
    consumer down(receiving(connect(up.addresses().at(0))), accepting());
    down.start();
    if (with_traffic) {
      const auto sent = up.send(letter("a"));
      (void)outcome_of(sent.ticket);
      down.stop(1s);
      up.close(1s);
    }
  };
  cycle(true);
  const auto descriptors_before = descriptors();
  const auto threads_before = threads();
  for (int i = 0; i < 200; ++i) {
    cycle(i % 10 == 0);
  }
  CHECK(descriptors() <= descriptors_before + 2);
  CHECK(threads() <= threads_before + 2);
}

TEST_CASE("a consumer whose name is taken stops by itself and says why", "[integration]") {
  auto so = sending(bind("tcp://127.0.0.1:*"));
  so.heartbeat = 50ms;
  so.lease = 1s;
  sender up(so);
  auto co = receiving(connect(up.addresses().at(0)));
  co.logical_id = "worker";
  consumer first(co, accepting());
  first.start();
  REQUIRE(outcome_of(up.send(letter("a")).ticket).state == final_state::accepted);
  consumer second(co, accepting());
  const auto report = second.run();
  CHECK(report.error.find("identity in use") != std::string::npos);
  CHECK(!report.clean);
  CHECK(outcome_of(up.send(letter("b")).ticket).state == final_state::accepted);
}

}  // namespace onay::test
