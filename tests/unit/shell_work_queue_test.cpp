// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors

#include "shell/work_queue.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <thread>

namespace onay::shell {

namespace {

std::vector<core::held*> pointers(std::vector<core::held>& of) {
  std::vector<core::held*> result;
  for (auto& h : of) {
    result.push_back(&h);
  }
  return result;
}

}  // namespace

TEST_CASE("deliveries are taken in the order of their dispatch", "[work_queue]") {
  std::vector<core::held> deliveries(3);
  work_queue queue(4, 4);
  for (int round = 0; round < 5; ++round) {  // over the end of the ring
    queue.push(pointers(deliveries));
    for (auto& d : deliveries) {
      CHECK(queue.take(false) == &d);
      queue.give_back();
    }
  }
  CHECK(queue.running() == 0);
}

TEST_CASE("no more are taken than there are permits", "[work_queue]") {
  std::vector<core::held> deliveries(2);
  work_queue queue(2, 1);
  queue.push(pointers(deliveries));
  CHECK(queue.take(false) == &deliveries[0]);
  CHECK(queue.running() == 1);
  std::atomic<core::held*> second{nullptr};
  std::thread waiting([&] { second = queue.take(false); });
  CHECK(second == nullptr);
  queue.give_back();
  waiting.join();
  CHECK(second == &deliveries[1]);
  CHECK(queue.running() == 1);
}

TEST_CASE("a worker returns its permit as it takes the next one", "[work_queue]") {
  std::vector<core::held> deliveries(2);
  work_queue queue(2, 1);
  queue.push(pointers(deliveries));
  CHECK(queue.take(false) == &deliveries[0]);
  CHECK(queue.take(true) == &deliveries[1]);
  CHECK(queue.running() == 1);
}

TEST_CASE("what no worker has taken can be taken back, in order", "[work_queue]") {
  std::vector<core::held> deliveries(3);
  work_queue queue(3, 1);
  queue.push(pointers(deliveries));
  queue.take(false);
  std::vector<core::held*> out;
  queue.reclaim(out);
  CHECK(out == std::vector<core::held*>{&deliveries[1], &deliveries[2]});
  queue.reclaim(out);
  CHECK(out.empty());
}

TEST_CASE("closing ends every waiting worker", "[work_queue]") {
  work_queue queue(1, 1);
  std::vector<std::thread> workers;
  std::atomic<int> ended{0};
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] { ended += queue.take(false) == nullptr ? 1 : 0; });
  }
  queue.close();
  for (auto& w : workers) {
    w.join();
  }
  CHECK(ended == 3);
}

TEST_CASE("permits are neither lost nor made under load", "[work_queue]") {
  constexpr int count = 20'000;
  std::vector<core::held> deliveries(64);
  work_queue queue(deliveries.size(), 2);
  std::atomic<int> running{0}, most{0}, taken{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (queue.take(false) != nullptr) {
        const int now = ++running;
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --running;
        ++taken;
        queue.give_back();
      }
    });
  }
  for (int pushed = 0; pushed < count;) {
    const int room = int(deliveries.size()) - (pushed - taken);
    for (int i = 0; i < room && pushed < count; ++i) {
      core::held* d = &deliveries[std::size_t(pushed++) % deliveries.size()];
      queue.push({&d, 1});
    }
    std::this_thread::yield();
  }
  while (taken < count) {
    std::this_thread::yield();
  }
  queue.close();
  for (auto& w : workers) {
    w.join();
  }
  CHECK(most <= 2);
  CHECK(queue.running() == 0);
}

}  // namespace onay::shell
