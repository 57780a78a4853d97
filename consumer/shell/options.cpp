// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "shell/options.hpp"

#include "shell/address.hpp"
#include "shell/entropy.hpp"

#include <onay/error.hpp>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

namespace onay {

configuration_error::configuration_error(std::string field, const std::string& value, const std::string& allowed,
                                         const std::string& hint)
    : std::invalid_argument("onay: " + field + " = " + value + " is refused: " + allowed + ". " + hint),
      field_(std::move(field)) {}

namespace shell {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t logical_id_max = 255;
constexpr std::uint64_t gibibyte = std::uint64_t(1) << 30U;
constexpr std::uint64_t no_maximum = std::uint64_t(1) << 48U;  // more bytes than a machine has
constexpr duration longest = std::chrono::hours(24 * 365);

std::string text_of(std::uint64_t n) { return std::to_string(n); }

std::string text_of(duration d) {
  const auto us = d.count();
  if (us % 1'000'000 == 0) {
    return std::to_string(us / 1'000'000) + " s";
  }
  return us % 1'000 == 0 ? std::to_string(us / 1'000) + " ms" : std::to_string(us) + " us";
}

std::string quoted(const std::string& text) { return '"' + text + '"'; }

// `hint` answers what somebody who wrote a wrong value probably wanted.
template <class T>
void require_range(const char* field, T value, T low, T high, const char* hint) {
  if (value < low || value > high) {
    throw configuration_error(field, text_of(value), "it must be " + text_of(low) + " to " + text_of(high), hint);
  }
}

void require_count(const char* field, std::uint64_t value, std::uint64_t high) {
  require_range<std::uint64_t>(field, value, 1, high, "Zero doesn't mean \"no limit\"; nothing could be held.");
}

void require_bytes(const char* field, byte_size value, std::uint64_t high = no_maximum) {
  require_range<std::uint64_t>(field, value.bytes, 1, high, "It is a number of bytes; zero doesn't mean \"no limit\".");
}

void require_positive(const char* field, duration value) {
  require_range(field, value, duration(1), longest,
                "Zero doesn't mean \"no limit\"; where none is possible it is spelled onay::no_limit. Check the unit.");
}

void require_positive(const char* field, limit<duration> value) {
  if (value.bounded()) {
    require_positive(field, value.value());
  }
}

void require_endpoint(const std::string& field, const endpoint& e, bool own_context) {
  address a;
  if (const auto wrong = read_address(e, a); !wrong.empty()) {
    throw configuration_error(field, quoted(e.address), wrong,
                              "Write \"tcp://host:port\", \"ipc:///path\" or \"inproc://name\".");
  }
  if (own_context && a.how == address::transport::inproc) {
    throw configuration_error(field, quoted(e.address), "inproc reaches only sockets of the same ZeroMQ context",
                              "Hand your own context to the constructor, at both ends.");
  }
}

void require_endpoints(const std::vector<endpoint>& endpoints, bool own_context) {
  if (endpoints.empty()) {
    throw configuration_error("endpoints", "{}", "there must be at least one",
                              "Add onay::bind(\"tcp://...\") or onay::connect(\"tcp://...\").");
  }
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    require_endpoint("endpoints[" + std::to_string(i) + "]", endpoints[i], own_context);
    for (std::size_t j = 0; j < i; ++j) {
      if (same_place(endpoints[i], endpoints[j])) {
        throw configuration_error("endpoints[" + std::to_string(i) + "]", quoted(endpoints[i].address),
                                  "it is the same place as " + quoted(endpoints[j].address), "Name each place once.");
      }
    }
  }
}

void require_dead_letter_endpoint(const endpoint& e, const std::vector<endpoint>& sources, bool own_context) {
  require_endpoint("dead_letters", e, own_context);
  for (const auto& source : sources) {
    if (same_place(e, source)) {
      throw configuration_error("dead_letters", quoted(e.address),
                                "it is the same place as the endpoint " + quoted(source.address),
                                "A dead letter sent back to where its message came from would go round for ever; "
                                "run a collector at an endpoint of its own.");
    }
  }
}

void require_name(std::string& logical_id) {
  if (logical_id.size() > logical_id_max) {
    throw configuration_error("logical_id", std::to_string(logical_id.size()) + " bytes", "at most 255 bytes",
                              "Shorten it, or leave it empty for a random one.");
  }
  if (logical_id.empty()) {
    logical_id = random_name();
  }
}

void require_io_threads(std::size_t n) {
  require_range<std::uint64_t>("io_threads", n, 1, 16, "One moves about a gigabyte a second.");
}

}  // namespace

sender_options validated(sender_options o, bool own_context) {
  require_endpoints(o.endpoints, own_context);
  require_range<duration>("lease", o.lease, 40ms, 1h, "It bounds how long a dead consumer's messages wait.");
  require_range<duration>("heartbeat", o.heartbeat, 10ms, o.lease / 4,
                          "Some heartbeats must fit into a lease: raise the lease, or lower the heartbeat.");
  require_positive("age_max", o.age_max);
  require_count("unsettled_max", o.unsettled_max, 16'000'000);
  require_bytes("unsettled_bytes_max", o.unsettled_bytes_max);
  require_count("parked_max", o.parked_max, 16'000'000);
  require_bytes("payload_max", o.payload_max, gibibyte);
  require_bytes("headers_max", o.headers_max, 16U << 20U);
  if (o.dead_letters) {
    require_dead_letter_endpoint(*o.dead_letters, o.endpoints, own_context);
  }
  require_io_threads(o.io_threads);
  require_name(o.logical_id);
  return o;
}

consumer_options validated(consumer_options o, bool own_context) {
  require_endpoints(o.endpoints, own_context);
  if (o.handler != idempotence::idempotent && o.handler != idempotence::not_idempotent) {
    throw configuration_error(
        "handler", "unstated", "it must be idempotent or not_idempotent",
        "Only the application knows whether an attempt whose outcome is unknown may be repeated.");
  }
  if (std::holds_alternative<std::monostate>(o.dead_letters)) {
    throw configuration_error("dead_letters", "{}", "it must be dead_letter_to, discard or collect",
                              "A message that can't be processed has to go somewhere: onay::dead_letter_to{endpoint}, "
                              "or spell out that it is lost with onay::discard{}.");
  }
  if (const auto* to = std::get_if<dead_letter_to>(&o.dead_letters)) {
    require_dead_letter_endpoint(to->where, o.endpoints, own_context);
  }
  require_count("credit_max", o.credit_max, 1'000'000);
  if (o.concurrency == consumer_options{}.concurrency) {
    o.concurrency = std::min({std::max(1U, std::thread::hardware_concurrency()), o.credit_max, 4096U});
  }
  require_range<std::uint64_t>("concurrency", o.concurrency, 1, 4096, "Leave it out for one handler a processor.");
  if (o.credit_max < o.concurrency) {
    throw configuration_error("credit_max", text_of(o.credit_max),
                              "at least concurrency (" + text_of(o.concurrency) + ")",
                              "With less, handlers would never all have work.");
  }
  require_bytes("payload_max", o.payload_max, gibibyte);
  require_bytes("credit_bytes_max", o.credit_bytes_max);
  if (o.credit_bytes_max.bytes < largest_message(o)) {
    throw configuration_error("credit_bytes_max", text_of(o.credit_bytes_max.bytes),
                              "at least one largest message (" + text_of(largest_message(o)) + ")",
                              "Raise it, or lower payload_max.");
  }
  if (o.attempts_max.bounded()) {
    require_range<std::uint64_t>("attempts_max", o.attempts_max.value(), 1, 1'000'000'000,
                                 "It counts handler starts, the first one too; no limit is spelled onay::no_limit.");
  }
  require_positive("attempt_timeout", o.attempt_timeout);
  require_positive("age_max", o.age_max);
  if (o.age_max.bounded() && o.attempt_timeout >= o.age_max.value()) {
    throw configuration_error("attempt_timeout", text_of(o.attempt_timeout),
                              "less than age_max (" + text_of(o.age_max.value()) + ")",
                              "One attempt must end before its message is too old.");
  }
  require_positive("abandon_after", o.abandon_after);
  require_range<duration>("backoff.cap", o.backoff.cap, 1us, 24h, "It is the longest wait between two attempts.");
  require_range<duration>("backoff.base", o.backoff.base, 1us, o.backoff.cap, "It must not exceed backoff.cap.");
  require_positive("backoff.retry_after_cap", o.backoff.retry_after_cap);
  require_count("inbox_max", o.inbox_max, 1'000'000'000);
  require_bytes("result_max", o.result_max, 8U << 20U);
  require_count("dead_letters_max", o.dead_letters_max, 1'000'000);
  require_io_threads(o.io_threads);
  require_name(o.logical_id);
  return o;
}

std::uint64_t largest_message(const sender_options& o) {
  return operation_key::size_max + o.headers_max.bytes + o.payload_max.bytes;
}

std::uint64_t largest_message(const consumer_options& o) {
  // A collector's messages are other consumers' largest ones, wrapped into letters.
  const bool collects = std::holds_alternative<collect>(o.dead_letters);
  return o.payload_max.bytes + message_overhead_max + (collects ? dead_letter_overhead_max : 0);
}

}  // namespace shell
}  // namespace onay
