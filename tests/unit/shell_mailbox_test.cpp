// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors

#include "shell/mailbox.hpp"
#include "support/catch.hpp"

#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

namespace onay::shell {

namespace {

bool rung(const wake& w) {
  pollfd p{w.descriptor(), POLLIN, 0};
  return poll(&p, 1, 0) == 1;
}

}  // namespace

TEST_CASE("a mailbox hands over what was posted, in order", "[mailbox]") {
  wake bell;
  mailbox<int> box(bell);
  std::vector<int> out{99};
  CHECK_FALSE(box.take(out));
  CHECK(out.empty());
  CHECK(box.post(1));
  CHECK(box.post(2));
  CHECK(box.take(out));
  CHECK(out == std::vector<int>{1, 2});
}

TEST_CASE("a post rings only when the reader sleeps", "[mailbox]") {
  wake bell;
  mailbox<int> box(bell);
  std::vector<int> out;
  box.post(1);
  CHECK_FALSE(rung(bell));
  CHECK_FALSE(box.sleep());  // something is there already
  box.take(out);
  CHECK(box.sleep());
  box.post(2);
  CHECK(rung(bell));
  bell.clear();
  box.post(3);
  CHECK_FALSE(rung(bell));  // once is enough
}

TEST_CASE("a closed mailbox takes nothing and forgets what it held", "[mailbox]") {
  wake bell;
  mailbox<std::shared_ptr<int>> box(bell);
  const auto item = std::make_shared<int>(1);
  box.post(item);
  box.close();
  CHECK(item.use_count() == 1);
  CHECK_FALSE(box.post(item));
  CHECK(item.use_count() == 1);
}

TEST_CASE("no wake-up is lost between a reader that falls asleep and writers", "[mailbox]") {
  wake bell;
  mailbox<int> box(bell);
  constexpr int each = 20'000;
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        box.post(i);
      }
    });
  }
  int seen = 0;
  std::vector<int> out;
  bool hung = false;
  while (seen < 2 * each && !hung) {
    if (box.take(out)) {
      seen += int(out.size());
    } else if (box.sleep()) {
      pollfd p{bell.descriptor(), POLLIN, 0};
      hung = poll(&p, 1, 20'000) != 1;
      bell.clear();
    }
  }
  CHECK_FALSE(hung);
  CHECK(seen == 2 * each);
  for (auto& w : writers) {
    w.join();
  }
}

}  // namespace onay::shell
