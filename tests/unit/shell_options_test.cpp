// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// C55: settings that make no sense are refused, with the field, the value, the range and what to do.
#include "shell/address.hpp"
#include "shell/options.hpp"
#include "support/catch.hpp"

#include <onay/error.hpp>

#include <functional>

namespace onay::shell {

namespace {

using namespace std::chrono_literals;

consumer_options good_consumer() {
  consumer_options o;
  o.endpoints = {connect("tcp://127.0.0.1:5555")};
  o.handler = idempotence::idempotent;
  o.dead_letters = discard{};
  return o;
}

sender_options good_sender() {
  sender_options o;
  o.endpoints = {bind("tcp://127.0.0.1:5555")};
  return o;
}

// The field that is refused; "" if nothing is.
template <class Options>
std::string refused(Options o, const std::function<void(Options&)>& change, std::string* what = nullptr) {
  change(o);
  try {
    (void)validated(std::move(o), true);
    return "";
  } catch (const configuration_error& e) {
    if (what != nullptr) {
      *what = e.what();
    }
    // Every refusal names its field in the text, too.
    CHECK(std::string(e.what()).find(e.field()) != std::string::npos);
    return e.field();
  }
}

std::string refused_consumer(const std::function<void(consumer_options&)>& change, std::string* what = nullptr) {
  return refused<consumer_options>(good_consumer(), change, what);
}
std::string refused_sender(const std::function<void(sender_options&)>& change) {
  return refused<sender_options>(good_sender(), change);
}

std::string wrong_with(endpoint e) {
  address a;
  return read_address(e, a);
}

}  // namespace

TEST_CASE("good options pass and get their defaults", "[options]") {
  const auto c = validated(good_consumer(), true);
  CHECK(c.concurrency >= 1);
  CHECK(c.logical_id.size() == 32);
  CHECK(validated(good_consumer(), true).logical_id != c.logical_id);
  CHECK(validated(good_sender(), true).logical_id.size() == 32);
  auto named = good_consumer();
  named.logical_id = "worker";
  named.credit_max = 1;  // the default concurrency follows
  CHECK(validated(named, true).logical_id == "worker");
  CHECK(validated(named, true).concurrency == 1);
}

TEST_CASE("a consumer's counts and sizes have ranges", "[options]") {
  CHECK(refused_consumer([](auto& o) { o.concurrency = 0; }) == "concurrency");
  CHECK(refused_consumer([](auto& o) { o.concurrency = std::uint32_t(-2); }) == "concurrency");
  CHECK(refused_consumer([](auto& o) { o.credit_max = 0; }) == "credit_max");
  CHECK(refused_consumer([](auto& o) { o.credit_max = 1'000'001; }) == "credit_max");
  CHECK(refused_consumer([](auto& o) {
          o.concurrency = 10;
          o.credit_max = 9;
        }) == "credit_max");
  CHECK(refused_consumer([](auto& o) { o.credit_bytes_max = {1'000}; }) == "credit_bytes_max");
  CHECK(refused_consumer([](auto& o) { o.payload_max = {0}; }) == "payload_max");
  CHECK(refused_consumer([](auto& o) { o.payload_max = {(1U << 30U) + 1U}; }) == "payload_max");
  CHECK(refused_consumer([](auto& o) { o.attempts_max = 0U; }) == "attempts_max");
  CHECK(refused_consumer([](auto& o) { o.attempts_max = no_limit; }).empty());
  CHECK(refused_consumer([](auto& o) { o.inbox_max = 0; }) == "inbox_max");
  CHECK(refused_consumer([](auto& o) { o.result_max = {0}; }) == "result_max");
  CHECK(refused_consumer([](auto& o) { o.dead_letters_max = 0; }) == "dead_letters_max");
  CHECK(refused_consumer([](auto& o) { o.io_threads = 0; }) == "io_threads");
  CHECK(refused_consumer([](auto& o) { o.io_threads = 17; }) == "io_threads");
  CHECK(refused_consumer([](auto& o) { o.logical_id = std::string(256, 'x'); }) == "logical_id");
}

TEST_CASE("a consumer's durations have ranges", "[options]") {
  CHECK(refused_consumer([](auto& o) { o.attempt_timeout = 0s; }) == "attempt_timeout");
  CHECK(refused_consumer([](auto& o) { o.attempt_timeout = -1s; }) == "attempt_timeout");
  CHECK(refused_consumer([](auto& o) { o.attempt_timeout = 24h; }) == "attempt_timeout");
  CHECK(refused_consumer([](auto& o) {
          o.attempt_timeout = 48h;
          o.age_max = no_limit;
        }).empty());
  CHECK(refused_consumer([](auto& o) { o.age_max = duration(0); }) == "age_max");
  CHECK(refused_consumer([](auto& o) { o.abandon_after = duration(-1); }) == "abandon_after");
  CHECK(refused_consumer([](auto& o) { o.backoff.base = 0s; }) == "backoff.base");
  CHECK(refused_consumer([](auto& o) { o.backoff.base = 31s; }) == "backoff.base");
  CHECK(refused_consumer([](auto& o) { o.backoff.cap = 25h; }) == "backoff.cap");
  CHECK(refused_consumer([](auto& o) { o.backoff.retry_after_cap = duration(0); }) == "backoff.retry_after_cap");
}

TEST_CASE("what only the application knows must be stated", "[options]") {
  CHECK(refused_consumer([](auto& o) { o.handler = idempotence::unstated; }) == "handler");
  CHECK(refused_consumer([](auto& o) { o.dead_letters = std::monostate{}; }) == "dead_letters");
}

TEST_CASE("a sender's options have ranges", "[options]") {
  CHECK(refused_sender([](auto& o) { o.lease = 0s; }) == "lease");
  CHECK(refused_sender([](auto& o) { o.lease = 39ms; }) == "lease");
  CHECK(refused_sender([](auto& o) { o.lease = 61min; }) == "lease");
  CHECK(refused_sender([](auto& o) { o.heartbeat = 1251ms; }) == "heartbeat");
  CHECK(refused_sender([](auto& o) { o.heartbeat = 9ms; }) == "heartbeat");
  CHECK(refused_sender([](auto& o) { o.heartbeat = -1s; }) == "heartbeat");
  CHECK(refused_sender([](auto& o) {
          o.lease = 40ms;
          o.heartbeat = 10ms;
        }).empty());
  CHECK(refused_sender([](auto& o) { o.age_max = duration(-1); }) == "age_max");
  CHECK(refused_sender([](auto& o) { o.unsettled_max = 0; }) == "unsettled_max");
  CHECK(refused_sender([](auto& o) { o.unsettled_bytes_max = {0}; }) == "unsettled_bytes_max");
  CHECK(refused_sender([](auto& o) { o.parked_max = 0; }) == "parked_max");
  CHECK(refused_sender([](auto& o) { o.payload_max = {0}; }) == "payload_max");
  CHECK(refused_sender([](auto& o) { o.headers_max = {(16U << 20U) + 1U}; }) == "headers_max");
  CHECK(refused_sender([](auto& o) { o.endpoints.clear(); }) == "endpoints");
}

TEST_CASE("endpoints must be well formed", "[options]") {
  CHECK(wrong_with(bind("tcp://127.0.0.1:5555")).empty());
  CHECK(wrong_with(bind("tcp://*:*")).empty());
  CHECK(wrong_with(bind("tcp://eth0:1")).empty());
  CHECK(wrong_with(connect("tcp://broker.example.org:65535")).empty());
  CHECK(wrong_with(connect("ipc:///run/x.sock")).empty());
  CHECK(wrong_with(connect("inproc://name")).empty());
  for (const auto* bad : {"",
                          "tcp",
                          "tcp://",
                          "tcp://:5555",
                          "tcp://host",
                          "tcp://host:",
                          "tcp://host:0",
                          "tcp://host:65536",
                          "tcp://host:x",
                          "tcp://host:55 ",
                          "tcp://host:-1",
                          "tcp://ho st:5555",
                          "tcp://*:5555",
                          "tcp://host:*",
                          "tcp://[::1]:5555",
                          "tcp://a;b:1",
                          "udp://host:1",
                          "http://host:1",
                          "host:5555",
                          "ipc://",
                          "inproc://",
                          " tcp://host:1"}) {
    INFO(bad);
    CHECK_FALSE(wrong_with(connect(bad)).empty());
  }
  CHECK_FALSE(wrong_with(connect(std::string("ipc:///x\0y", 10))).empty());
  CHECK_FALSE(wrong_with(connect("ipc:///" + std::string(107, 'x'))).empty());
  CHECK(refused_consumer([](auto& o) { o.endpoints[0].address = "tcp://host"; }) == "endpoints[0]");
  CHECK(refused_consumer([](auto& o) { o.endpoints.push_back(connect("tcp://localhost:5555")); }) == "endpoints[1]");
  // A context of its own reaches nobody else's inproc.
  CHECK(refused_consumer([](auto& o) { o.endpoints[0].address = "inproc://x"; }) == "endpoints[0]");
}

// C11a
TEST_CASE("dead letters can't go back to where their messages came from", "[options]") {
  for (const auto* same : {"tcp://127.0.0.1:5555", "tcp://localhost:5555"}) {
    std::string what;
    CHECK(refused_consumer([&](auto& o) { o.dead_letters = dead_letter_to{connect(same)}; }, &what) == "dead_letters");
    CHECK(what.find(same) != std::string::npos);
    CHECK(what.find("tcp://127.0.0.1:5555") != std::string::npos);
  }
  CHECK(refused_consumer([](auto& o) { o.dead_letters = dead_letter_to{bind("tcp://*:5555")}; }) == "dead_letters");
  CHECK(refused_consumer([](auto& o) { o.dead_letters = dead_letter_to{connect("tcp://127.0.0.1:5556")}; }).empty());
  CHECK(refused_consumer([](auto& o) { o.dead_letters = dead_letter_to{connect("tcp://other:5555")}; }).empty());
  CHECK(refused_consumer([](auto& o) { o.dead_letters = dead_letter_to{connect("nonsense")}; }) == "dead_letters");
  CHECK(refused_sender([](auto& o) { o.dead_letters = connect("tcp://localhost:5555"); }) == "dead_letters");
  CHECK_FALSE(same_place(bind("tcp://127.0.0.1:*"), bind("tcp://127.0.0.1:*")));
  CHECK(same_place(connect("ipc:///a"), bind("ipc:///a")));
  CHECK_FALSE(same_place(connect("ipc:///a"), connect("ipc:///b")));
}

}  // namespace onay::shell
