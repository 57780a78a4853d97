// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// How deliveries end: by other threads, by being dropped, by failing, by throwing, as duplicates.
#include "integration/fixture.hpp"

#include <onay/dead_letter.hpp>

#include <new>
#include <stdexcept>

namespace onay::test {

namespace {

struct no_words : std::exception {
  const char* what() const noexcept override { return nullptr; }
};
struct plain {};

}  // namespace

TEST_CASE("an asynchronous delivery is settled from another thread", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  std::vector<std::thread> threads;
  std::mutex mutex;
  auto co = receiving(connect(up.addresses().at(0)));
  co.concurrency = 8;
  consumer down(co, [&](delivery d, context c) {
    const std::lock_guard lock(mutex);
    threads.emplace_back([held = std::move(d), c]() mutable {
      const auto text = "attempt " + std::to_string(c.attempt());
      std::move(held).settle(accept(text));
      (void)c.stop_requested();  // a context may outlive its delivery
      (void)c.stop_token();
    });
  });
  down.start();
  std::vector<receipt> receipts;
  for (int i = 0; i < 50; ++i) {
    receipts.push_back(up.send(letter(std::to_string(i))).ticket);
  }
  for (const auto& r : receipts) {
    CHECK(outcome_of(r).result == "attempt 1");
  }
  CHECK(down.stop(10s).clean);
  for (auto& t : threads) {
    t.join();
  }
}

TEST_CASE("an asynchronous delivery that is dropped is tried again as uncertain", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), [](delivery d, context c) {
    if (c.attempt() > 1) {
      std::move(d).settle(accept("attempt " + std::to_string(c.attempt())));
    }
  });
  down.start();
  CHECK(outcome_of(up.send(letter("a")).ticket).result == "attempt 2");
  const auto s = down.status();
  CHECK(s.retried == 1);
  CHECK(s.by_error_class[int(error_class::uncertain)] == 1);
  CHECK(up.status().successes_after_retry == 1);
}

TEST_CASE("deliveries may be settled and dropped after their consumer is gone", "[integration]") {
  std::vector<delivery> kept;
  std::vector<context> contexts;
  {
    sender up(sending(bind("tcp://127.0.0.1:*")));
    auto co = receiving(connect(up.addresses().at(0)));
    co.concurrency = 2;
    std::mutex mutex;
    consumer down(co, [&](delivery d, context c) {
      const std::lock_guard lock(mutex);
      kept.push_back(std::move(d));
      contexts.push_back(std::move(c));
    });
    down.start();
    (void)up.send(letter("a", "one"));
    (void)up.send(letter("b", "two"));
    REQUIRE(eventually([&] {
      const std::lock_guard lock(mutex);
      return kept.size() == 2;
    }));
    const auto report = down.stop(0s);
    CHECK_FALSE(report.clean);
    CHECK(report.running == 2);
  }
  CHECK(kept[0].payload().size() == 3);
  std::move(kept[0]).settle(accept());
  kept.clear();
  CHECK(eventually([&] { return contexts[0].stop_requested() && contexts[1].stop_requested(); }));
}

TEST_CASE("a retry that succeeds sees attempt two", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), [](const delivery&, context& c) {
    return c.attempt() == 1 ? failure(error_class::transient, "not yet") : accept(std::to_string(c.attempt()));
  });
  down.start();
  CHECK(outcome_of(up.send(letter("a")).ticket).result == "2");
  CHECK(down.status().starts == 2);
}

TEST_CASE("a permanent failure ends at the collector, with its reason, its record and the original bytes",
          "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  std::mutex mutex;
  std::vector<dead_letter> letters;
  auto collecting = receiving(bind("tcp://127.0.0.1:*"));
  collecting.dead_letters = collect{};
  consumer collector(collecting, [&](const delivery& d, context&) {
    auto read = read_dead_letter(d.payload());
    if (!read) {
      return failure(error_class::permanent, "not a letter");
    }
    const std::lock_guard lock(mutex);
    letters.push_back(std::move(*read));
    return accept();
  });
  collector.start();
  auto co = receiving(connect(up.addresses().at(0)));
  co.logical_id = "worker";
  co.dead_letters = dead_letter_to{connect(collector.addresses().at(0))};
  consumer down(co, [](const delivery&, context&) { return failure(error_class::permanent, "no such customer"); });
  down.start();

  const std::string payload("\0\xff binary", 9);
  auto m = letter("order", payload);
  m.headers = {{"trace", "t1"}};
  const auto end = outcome_of(up.send(m).ticket);
  CHECK(end.state == final_state::dead_lettered);
  CHECK(end.why == reason::rejected);
  CHECK(end.record.attempts == 1);
  CHECK(end.record.last_error == error_class::permanent);
  CHECK(end.record.last_error_text == "no such customer");

  const std::lock_guard lock(mutex);
  REQUIRE(letters.size() == 1);
  CHECK(letters[0].origin == "worker");
  CHECK(letters[0].why == reason::rejected);
  CHECK(letters[0].payload == payload);
  CHECK(letters[0].headers == std::vector<header>{{"trace", "t1"}});
  CHECK(letters[0].record.operation_key == "order");
  CHECK(letters[0].record.attempts == 1);
  CHECK(letters[0].record.last_error_text == "no such customer");
  CHECK(letters[0].id.number == 1);
}

TEST_CASE("a consumer says whether its collector is there, and what it was refused with", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  sender other(sending(bind("tcp://127.0.0.1:*")));
  auto collecting = receiving(bind("tcp://127.0.0.1:*"));
  collecting.dead_letters = collect{};
  consumer collector(collecting, accepting());
  collector.start();
  auto co = receiving(connect(up.addresses().at(0)));
  co.dead_letters = dead_letter_to{connect(collector.addresses().at(0))};
  consumer good(co, accepting());
  good.start();
  CHECK(eventually([&] { return good.status().collector_connected; }));
  co.dead_letters = dead_letter_to{connect(other.addresses().at(0))};  // a sender's address
  consumer wrong(co, accepting());
  wrong.start();
  CHECK(eventually([&] { return !wrong.status().refused_by_collector.empty(); }));
  CHECK(!wrong.status().collector_connected);
}

TEST_CASE("a handler that owns its delivery can't return an outcome by mistake", "[integration]") {
  const auto lost = [](delivery, context) { return accept(); };
  const auto sync = [](const delivery&, context&) { return accept(); };
  const auto async = [](delivery d, context) { std::move(d).settle(accept()); };
  CHECK(!std::is_constructible_v<consumer, consumer_options, decltype(lost)>);
  CHECK(std::is_constructible_v<consumer, consumer_options, decltype(sync)>);
  CHECK(std::is_constructible_v<consumer, consumer_options, decltype(async)>);
}

// C50
TEST_CASE("an empty payload is handled, and buried, as such", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  std::atomic<int> letters{0};
  auto collecting = receiving(bind("tcp://127.0.0.1:*"));
  collecting.dead_letters = collect{};
  consumer collector(collecting, [&](const delivery& d, context&) {
    const auto read = read_dead_letter(d.payload());
    letters += read && read->payload.empty() && read->record.operation_key == "bad" ? 1 : 100;
    return accept();
  });
  collector.start();
  auto co = receiving(connect(up.addresses().at(0)));
  co.dead_letters = dead_letter_to{connect(collector.addresses().at(0))};
  consumer down(co, [](const delivery& d, context&) {
    return d.payload().empty() && d.key() == "good" ? accept("empty") : failure(error_class::permanent, "no");
  });
  down.start();
  CHECK(outcome_of(up.send(letter("good", "")).ticket).result == "empty");
  CHECK(outcome_of(up.send(letter("bad", "")).ticket).state == final_state::dead_lettered);
  CHECK(letters == 1);
}

TEST_CASE("many condemned messages pass a collector with little credit", "[integration]") {
  constexpr int count = 300;
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto collecting = receiving(bind("tcp://127.0.0.1:*"));
  collecting.dead_letters = collect{};
  collecting.credit_max = 64;
  consumer collector(collecting, accepting());
  collector.start();
  auto co = receiving(connect(up.addresses().at(0)));
  co.dead_letters = dead_letter_to{connect(collector.addresses().at(0))};
  consumer down(co, [](const delivery&, context&) { return failure(error_class::permanent, "no"); });
  down.start();
  std::vector<receipt> receipts;
  for (int i = 0; i < count; ++i) {
    receipts.push_back(up.send(letter(std::to_string(i))).ticket);
  }
  int buried = 0;
  for (const auto& r : receipts) {
    const auto* m = r.wait_for(patience);
    buried += m != nullptr && m->state == final_state::dead_lettered ? 1 : 0;
  }
  CHECK(buried == count);
  CHECK(collector.status().accepted == std::uint64_t(count));
}

TEST_CASE("the attempt limit dead-letters", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.attempts_max = 3;
  std::atomic<int> starts{0};
  consumer down(co, [&](const delivery&, context&) {
    ++starts;
    return failure(error_class::transient, "down");
  });
  down.start();
  const auto end = outcome_of(up.send(letter("a")).ticket);
  CHECK(end.state == final_state::dead_lettered);
  CHECK(end.why == reason::attempts_exhausted);
  CHECK(end.record.attempts == 3);
  CHECK(starts == 3);
}

TEST_CASE("a send with the key of an unsettled message joins it, and with another payload is refused",
          "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  event go;
  std::atomic<int> starts{0};
  consumer down(receiving(connect(up.addresses().at(0))), [&](const delivery&, context&) {
    ++starts;
    go.wait();
    return accept("first");
  });
  down.start();
  const auto first = up.send(letter("a", "same"));
  const auto second = up.send(letter("a", "same"));
  const auto other = up.send(letter("a", "different"));
  const auto refused = outcome_of(other.ticket);
  CHECK(refused.refused());
  CHECK(refused.why == reason::key_conflict);
  CHECK(second->poll() == nullptr);
  go.set();
  CHECK(outcome_of(first.ticket).result == "first");
  CHECK(outcome_of(second.ticket).result == "first");
  CHECK(starts == 1);
  CHECK(up.wait_idle(patience));
  const auto s = up.status();
  CHECK(s.sent == 1);
  CHECK(s.joined == 1);
  CHECK(s.refused == 1);
  CHECK(s.unsettled_bytes == 0);
}

TEST_CASE("a settled key that is sent again is answered from the inbox", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  std::atomic<int> starts{0};
  consumer down(receiving(connect(up.addresses().at(0))),
                [&](const delivery&, context&) { return accept("run " + std::to_string(++starts)); });
  down.start();
  CHECK(outcome_of(up.send(letter("a")).ticket).result == "run 1");
  CHECK(outcome_of(up.send(letter("a")).ticket).result == "run 1");
  CHECK(starts == 1);
  CHECK(eventually([&] { return down.status().duplicates == 1; }));
}

TEST_CASE("a handler that isn't idempotent runs after its sender's word", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.handler = idempotence::not_idempotent;
  co.concurrency = 2;
  consumer down(co, [](const delivery&, context&) { return accept("done"); });
  down.start();
  std::vector<receipt> receipts;
  for (int i = 0; i < 100; ++i) {
    receipts.push_back(up.send(letter(std::to_string(i))).ticket);
  }
  for (const auto& r : receipts) {
    CHECK(outcome_of(r).result == "done");
  }
}

// C38
TEST_CASE("whatever a handler throws is a failure of that one message", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  const bool async = GENERATE(false, true);
  auto co = receiving(connect(up.addresses().at(0)));
  co.unclassified_is_transient = true;
  const auto maybe_throw = [](std::string_view key, std::uint32_t attempt) {
    if (attempt > 1) {
      return;
    }
    if (key == "int") {
      throw 42;  // NOLINT
    }
    if (key == "text") {
      throw "text";  // NOLINT
    }
    if (key == "plain") {
      throw plain{};  // NOLINT
    }
    if (key == "bad_alloc") {
      throw std::bad_alloc();
    }
    if (key == "no words") {
      throw no_words{};
    }
  };
  std::unique_ptr<consumer> down;
  if (async) {
    down = std::make_unique<consumer>(co, [&](delivery d, context c) {
      maybe_throw(d.key(), c.attempt());
      std::move(d).settle(accept("attempt " + std::to_string(c.attempt())));
    });
  } else {
    down = std::make_unique<consumer>(co, [&](const delivery& d, context& c) {
      maybe_throw(d.key(), c.attempt());
      return accept("attempt " + std::to_string(c.attempt()));
    });
  }
  down->start();
  for (const auto* key : {"int", "text", "plain", "bad_alloc", "no words"}) {
    CHECK(outcome_of(up.send(letter(key)).ticket).result == "attempt 2");
  }
  const auto s = down->status();
  CHECK(s.retried == 5);
  CHECK(s.by_error_class[int(error_class::transient)] == 5);
}

TEST_CASE("an exception is permanent by default, and its words reach the record", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  consumer down(receiving(connect(up.addresses().at(0))), [](const delivery& d, context&) -> outcome {
    if (d.key() == "std") {
      throw std::runtime_error("broken pipe");
    }
    if (d.key() == "no words") {
      throw no_words{};
    }
    throw 42;  // NOLINT
  });
  down.start();
  const auto known = outcome_of(up.send(letter("std")).ticket);
  CHECK(known.why == reason::rejected);
  CHECK(known.record.last_error_text == "broken pipe");
  CHECK_FALSE(outcome_of(up.send(letter("no words")).ticket).record.last_error_text.empty());
  CHECK(outcome_of(up.send(letter("int")).ticket).record.last_error_text == "unknown exception (int)");
}

TEST_CASE("a result above its limit is dropped and counted", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.result_max = {100};
  consumer down(co, [](const delivery& d, context&) { return accept(std::string(d.payload().size(), 'r')); });
  down.start();
  CHECK(outcome_of(up.send(letter("fits", std::string(100, 'p'))).ticket).result.size() == 100);
  const auto end = outcome_of(up.send(letter("does not", std::string(101, 'p'))).ticket);
  CHECK(end.state == final_state::accepted);
  CHECK(end.result.empty());
  CHECK(down.status().results_dropped == 1);
}

TEST_CASE("the stop token fires at the attempt's timeout", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.attempt_timeout = 100ms;
  consumer down(co, [](const delivery&, context& c) {
    if (c.attempt() > 1) {
      return accept("second");
    }
    event stopped;
    const std::stop_callback on_stop(c.stop_token(), [&] { stopped.set(); });
    return stopped.wait() && c.time_left() == 0ms ? failure(error_class::uncertain, "timed out") : accept("never told");
  });
  down.start();
  CHECK(outcome_of(up.send(letter("a")).ticket).result == "second");
}

TEST_CASE("an exception after the stop token has fired is uncertain, before it permanent", "[integration]") {
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.attempt_timeout = 50ms;
  consumer down(co, [](const delivery& d, context& c) -> outcome {
    if (c.attempt() > 1) {
      return accept("second");
    }
    if (d.key() == "late") {
      event stopped;
      const std::stop_callback on_stop(c.stop_token(), [&] { stopped.set(); });
      (void)stopped.wait();
    }
    throw std::runtime_error("cancelled");
  });
  down.start();
  CHECK(outcome_of(up.send(letter("late")).ticket).result == "second");
  CHECK(outcome_of(up.send(letter("early")).ticket).why == reason::rejected);
  CHECK(down.status().by_error_class[std::size_t(error_class::uncertain)] == 1);
}

// C44
TEST_CASE("many threads settle at once and every answer arrives once", "[integration]") {
  constexpr int count = 2'000;
  sender up(sending(bind("tcp://127.0.0.1:*")));
  auto co = receiving(connect(up.addresses().at(0)));
  co.concurrency = 16;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<delivery> waiting;
  bool over = false;
  std::vector<std::thread> settlers;
  for (int i = 0; i < 4; ++i) {
    settlers.emplace_back([&] {
      for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return over || !waiting.empty(); });
        if (waiting.empty()) {
          return;
        }
        auto d = std::move(waiting.back());
        waiting.pop_back();
        lock.unlock();
        std::move(d).settle(accept(std::string(d.key())));  // empty by then: a view of nothing
      }
    });
  }
  {
    consumer down(co, [&](delivery d, context) {
      {
        const std::lock_guard lock(mutex);
        waiting.push_back(std::move(d));
      }
      changed.notify_one();
    });
    down.start();
    std::vector<receipt> receipts;
    for (int i = 0; i < count; ++i) {
      receipts.push_back(up.send(letter(std::to_string(i))).ticket);
    }
    int accepted = 0;
    for (const auto& r : receipts) {
      const auto* m = r.wait_for(patience);
      accepted += m != nullptr && m->state == final_state::accepted ? 1 : 0;
    }
    CHECK(accepted == count);
    CHECK(down.status().accepted == std::uint64_t(count));
  }
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  for (auto& t : settlers) {
    t.join();
  }
}

}  // namespace onay::test
