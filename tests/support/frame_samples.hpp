// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// Random commands of every type, for tests of the wire. The same seed gives the same commands.
#pragma once

#include "core/frames.hpp"
#include "wire/codec.hpp"

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace onay::test {

// Makes commands; owns the bytes that their views point to.
class frame_samples {
 public:
  static constexpr std::size_t types = std::variant_size_v<core::frame>;

  explicit frame_samples(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] core::frame any() { return of_type(below(types)); }

  [[nodiscard]] core::frame of_type(std::uint64_t index) {
    switch (index) {
      case 0: {
        core::hello f;
        f.version_max = 1 + static_cast<std::uint32_t>(below(3));
        f.self = greeting();
        f.connection = number();
        if (coin()) {
          f.resume = number();
        }
        return f;
      }
      case 1:
        return core::welcome{number(), 1, greeting(), number(), coin()};
      case 2:
        return core::wait{number(), time(), text()};
      case 3:
        return core::refused{number(), choice(core::refusal::closing), time(), text()};
      case 4: {
        core::deliver f{number(), 1 + number() / 2, {}};
        for (auto n = below(6); n > 0; --n) {
          f.items.push_back(item());
        }
        return f;
      }
      case 5:
        return core::sender_heartbeat{number(), number(), number(), number(), number(), number(),
                                      number(), number(), ranges(), number(), number(), coin()};
      case 6:
        return core::consumer_heartbeat{number(), number(), number(), ranges(), ranges(), ranges(),
                                        ranges(), ranges(), number(), number(), coin()};
      case 7: {
        core::settle f{number(), number(), ranges(), settlements(), {},
                       ranges(), ranges(), number(), number(),      number()};
        for (auto n = below(4); n > 0; --n) {
          f.late.push_back({number(), at_least_1(), kind(), coin(), view(bytes(20))});
        }
        return f;
      }
      case 8: {
        core::settled f{number(), number(), ranges(), {}, {}, ranges()};
        for (auto n = below(4); n > 0; --n) {
          f.others.push_back({at_least_1(), kind(), verdict(), coin() ? std::optional(record()) : std::nullopt});
        }
        for (auto n = below(4); n > 0; --n) {
          f.late.push_back({number(), at_least_1(), kind(), verdict()});
        }
        return f;
      }
      case 9:
        return core::bye{number(), number(), ranges(), ranges(), settlements()};
      case 10:
        return core::bye_ok{number()};
      default:
        return core::error{static_cast<core::error_code>(1 + below(6)), coin() ? std::optional(number()) : std::nullopt,
                           static_cast<std::uint8_t>(below(256)), coin(), text()};
    }
  }

  // As a sender makes it; `condemned` items have a record most times, `nil` ones nothing.
  [[nodiscard]] core::deliver_item item() {
    core::deliver_item i;
    i.number = at_least_1();
    i.flags = static_cast<std::uint8_t>(below(core::delivery_flag::all + 1));
    i.size = number();
    if ((i.flags & core::delivery_flag::nil) != 0) {
      return i;
    }
    i.doc.key = view(std::string(1, char(below(256))) + bytes(254));
    i.doc.attempt = static_cast<std::uint32_t>(1 + (number() & 0xfffffffeU) % 0xffffffffU);
    i.doc.age = time();
    if (coin()) {
      i.doc.time_left = time();
    }
    std::vector<header> headers;
    for (auto n = below(3); n > 0; --n) {
      headers.push_back({bytes(10), bytes(40)});
    }
    i.doc.headers = view(wire::encode_headers(headers));
    i.doc.payload = view(bytes(coin() ? 10 : 3000));
    if ((i.flags & core::delivery_flag::condemned) != 0) {
      i.doc.why = static_cast<reason>(1 + below(12));
      if (below(4) > 0) {
        i.doc.record = std::make_shared<const retry_record>(record());
      }
    }
    return i;
  }

  [[nodiscard]] retry_record record() {
    retry_record r;
    r.operation_key = bytes(255);
    r.attempts = static_cast<std::uint32_t>(number());
    r.first_attempt = instant();
    r.last_attempt = instant();
    r.last_error = choice(error_class::uncertain);
    r.last_error_text = text();
    r.next_attempt = instant();
    r.deadline = instant();
    r.state = choice(final_state::unknown);
    return r;
  }

  // Of every magnitude, so that each width of integer is met.
  [[nodiscard]] std::uint64_t number() {
    const auto bits = below(65);
    return bits == 0 ? 0 : random_() >> (64 - bits);
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random_() % n; }
  [[nodiscard]] bool coin() { return below(2) == 0; }
  [[nodiscard]] std::string bytes(std::uint64_t size_max) {
    std::string s(static_cast<std::size_t>(below(size_max + 1)), '\0');
    for (auto& c : s) {
      c = static_cast<char>(random_());
    }
    return s;
  }

 private:
  std::string_view view(std::string bytes) { return owned_.emplace_back(std::move(bytes)); }
  std::uint64_t at_least_1() { return 1 + number() % (std::numeric_limits<std::uint64_t>::max() - 1); }
  duration time() { return duration(static_cast<duration::rep>(number() >> 1U)); }
  std::string text() { return coin() ? bytes(40) : std::string("timed out \xe2\x80\x93 after 3 s"); }
  core::settlement kind() { return static_cast<core::settlement>(1 + below(5)); }
  core::verdict verdict() { return static_cast<core::verdict>(1 + below(3)); }
  template <class Enum>
  Enum choice(Enum last) {
    return static_cast<Enum>(below(static_cast<std::uint64_t>(last) + 1));
  }
  std::optional<utc_time> instant() {
    return coin() ? std::optional(utc_time(duration(static_cast<duration::rep>(number())))) : std::nullopt;
  }

  core::ranges ranges() {
    core::ranges result;
    std::uint64_t end = 0;
    for (auto n = below(5); n > 0; --n) {
      const auto first = end + 1 + (number() >> 4U);
      const auto last = first + (number() >> 4U);
      result.append({first, last});
      end = last;
    }
    return result;
  }

  std::vector<core::settlement_item> settlements() {
    std::vector<core::settlement_item> items;
    for (auto n = below(4); n > 0; --n) {
      items.push_back({at_least_1(), kind(), time(), choice(error_class::uncertain),
                       choice(reason::unsupported_version), view(text()), coin(), view(bytes(300))});
    }
    return items;
  }

  core::greeting greeting() {
    core::greeting g{.logical_id = "id-" + bytes(252),
                     .instance = number(),
                     .largest_message = number(),
                     .byte_window = number(),
                     .part = {}};
    if (coin()) {
      g.part = core::sender_greeting{number(), number(), number(), time(), time()};
    } else {
      g.part = core::consumer_greeting{
          coin() ? std::optional(1 + static_cast<std::uint32_t>(number() % 0xffffffffU)) : std::nullopt, coin(), coin(),
          number()};
    }
    return g;
  }

  std::mt19937_64 random_;
  std::deque<std::string> owned_;
};

}  // namespace onay::test
