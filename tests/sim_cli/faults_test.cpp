// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/faults.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace onay::sim;
using namespace std::chrono_literals;
using queue = fault_queue<std::string, int>;

namespace {

constexpr onay::time_point t0{onay::duration(1'000'000)};

std::vector<int> drain(queue& q, onay::time_point now) {
  std::vector<int> out;
  while (const auto frame = q.poll(now)) out.push_back(*frame);
  return out;
}

std::size_t survivors(const fault_options& o, heading where, cargo what, int frames = 10'000) {
  queue q(o);
  std::size_t passed = 0;
  for (int n = 0; n < frames; ++n) {
    q.submit(t0, "peer", where, what, n);
    passed += drain(q, t0).size();
  }
  return passed;
}

}  // namespace

TEST_CASE("without faults every frame passes at once and in order") {
  queue q(fault_options{});
  for (int n = 0; n < 5; ++n) q.submit(t0, "a", heading::leaving, cargo::deliver, n);
  CHECK(q.next_deadline() == t0);
  CHECK(drain(q, t0) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(q.next_deadline() == onay::time_point::max());
  CHECK(q.counts().frames == 5);
  CHECK_FALSE(fault_options{}.any());
}

TEST_CASE("each drop hits its own kind of frame only") {
  const fault_options settle{.drop_settle = 1}, deliver{.drop_deliver = 1}, any{.drop_any = 1};
  CHECK(survivors(settle, heading::arriving, cargo::settle) == 0);
  CHECK(survivors(settle, heading::leaving, cargo::deliver) == 10'000);
  CHECK(survivors(settle, heading::arriving, cargo::other) == 10'000);
  CHECK(survivors(deliver, heading::leaving, cargo::deliver) == 0);
  CHECK(survivors(deliver, heading::arriving, cargo::settle) == 10'000);
  CHECK(survivors(any, heading::leaving, cargo::other) == 0);
  CHECK(survivors(any, heading::arriving, cargo::settle) == 0);
}

TEST_CASE("frames are hit as often as asked for, and the same ones for the same seed") {
  const auto passed = survivors({.drop_any = 0.05, .seed = 3}, heading::leaving, cargo::other);
  CHECK(std::abs(static_cast<double>(passed) - 9500) < 100);
  CHECK(survivors({.drop_any = 0.05, .seed = 3}, heading::leaving, cargo::other) == passed);
  const auto doubled = survivors({.duplicate = 0.05}, heading::leaving, cargo::other);
  CHECK(std::abs(static_cast<double>(doubled) - 10'500) < 100);
}

TEST_CASE("a duplicate follows its original") {
  queue q({.duplicate = 1});
  q.submit(t0, "a", heading::leaving, cargo::other, 7);
  q.submit(t0, "a", heading::leaving, cargo::other, 8);
  CHECK(drain(q, t0) == std::vector<int>{7, 7, 8, 8});
}

TEST_CASE("a reordered frame is swapped with the next of its lane") {
  queue q({.reorder = 1});
  q.submit(t0, "a", heading::leaving, cargo::other, 1);
  q.submit(t0, "b", heading::leaving, cargo::other, 10);
  CHECK(drain(q, t0).empty());
  q.submit(t0, "a", heading::leaving, cargo::other, 2);
  CHECK(drain(q, t0) == std::vector<int>{2, 1});
  q.submit(t0, "b", heading::leaving, cargo::other, 20);
  CHECK(drain(q, t0) == std::vector<int>{20, 10});
}

TEST_CASE("a reordered frame without a next one goes after 50 ms") {
  queue q({.reorder = 1});
  q.submit(t0, "a", heading::leaving, cargo::other, 1);
  CHECK(q.next_deadline() == t0 + 50ms);
  CHECK(drain(q, t0 + 49ms).empty());
  CHECK(drain(q, t0 + 50ms) == std::vector<int>{1});
  CHECK(q.next_deadline() == onay::time_point::max());
}

TEST_CASE("a delayed frame comes later, and in order") {
  queue q({.delay = 30ms});
  q.submit(t0, "a", heading::leaving, cargo::other, 1);
  q.submit(t0 + 10ms, "a", heading::leaving, cargo::other, 2);
  CHECK(q.next_deadline() == t0 + 30ms);
  CHECK(drain(q, t0 + 29ms).empty());
  CHECK(drain(q, t0 + 30ms) == std::vector<int>{1});
  CHECK(q.next_deadline() == t0 + 40ms);
  CHECK(drain(q, t0 + 1s) == std::vector<int>{2});
}
