// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Signals: as interruptions, and as requests to stop.
#include "integration/fixture.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace onay::test {

namespace {

std::atomic<int> interruptions{0};

// Without SA_RESTART, so that blocking calls return EINTR.
class storm {
 public:
  storm() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++interruptions; };
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, &previous_);
    thread_ = std::thread([this] {
      while (!over_) {
        if (auto* d = opendir("/proc/self/task")) {
          while (const auto* e = readdir(d)) {
            if (const int id = std::atoi(e->d_name); id > 0) {
              syscall(SYS_tgkill, getpid(), id, SIGUSR1);
            }
          }
          closedir(d);
        }
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  ~storm() {
    over_ = true;
    thread_.join();
    sigaction(SIGUSR1, &previous_, nullptr);
  }

 private:
  struct sigaction previous_ {};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace

// C42
TEST_CASE("interrupted system calls disturb nothing, neither at start nor at stop", "[integration]") {
  const storm raging;
  std::atomic<int> handled{0};
  for (int round = 0; round < 5; ++round) {
    sender up(sending(bind("tcp://127.0.0.1:*")));
    auto co = receiving(connect(up.addresses().at(0)));
    co.concurrency = 2;
    consumer down(co, [&](const delivery&, context&) {
      ++handled;
      return accept();
    });
    down.start();
    for (int i = 0; i < 200; ++i) {
      REQUIRE(outcome_of(up.send(letter(std::to_string(i))).ticket).state == final_state::accepted);
    }
    CHECK(down.stop(10s).clean);
    CHECK(up.close(10s).clean);
  }
  CHECK(handled == 1'000);
  CHECK(interruptions > 0);
}

// C36d
TEST_CASE("SIGTERM drains: the running handler finishes and is acknowledged", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event started;
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context& c) {
    started.set();
    event never;
    (void)never.wait(300ms);
    return c.stop_requested() ? failure(error_class::permanent, "cut short") : accept("finished");
  });
  const stop_on_signals signals(down, 10s);
  CHECK_THROWS_AS(stop_on_signals(down, 10s), setup_error);
  const auto sent = up.send(letter("a"));
  std::thread killer([&] {
    started.wait();
    kill(getpid(), SIGTERM);
  });
  const auto report = down.run();
  killer.join();
  CHECK(report.clean);
  CHECK(outcome_of(sent.ticket).result == "finished");
}

TEST_CASE("a second signal cuts the drain short", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event started;
  event go;
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context& c) {
    const std::stop_callback on_stop(c.stop_token(), [&] { go.set(); });
    started.set();
    go.wait();
    return accept();
  });
  const stop_on_signals signals(down, 1h);
  REQUIRE(up.send(letter("a")));
  REQUIRE(up.send(letter("b")));
  std::thread killer([&] {
    started.wait();
    eventually([&] { return down.status().queued == 1; });
    kill(getpid(), SIGINT);
    // The drain hands the queued one back. Two signals at once would be merged by the kernel.
    eventually([&] { return down.status().released == 1; });
    kill(getpid(), SIGINT);
  });
  const auto end = down.run();
  killer.join();
  CHECK(end.released == 1);
  CHECK(go.wait());
}

}  // namespace onay::test
