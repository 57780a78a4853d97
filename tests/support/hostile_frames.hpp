// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// What a hostile peer says: bytes that are no command, and commands that are sound but absurd. The same seed says the
// same.
#pragma once

#include "support/frame_samples.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onay::test {

class hostile_frames {
 public:
  static constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  static constexpr auto longest = duration(std::numeric_limits<duration::rep>::max());
  // No message of a test is numbered so high: a late settlement of these can't be anybody's.
  static constexpr std::uint64_t nobodys = std::uint64_t{1} << 50U;

  explicit hostile_frames(std::uint64_t seed) : samples_(seed) {
    for (std::uint64_t i = 0; i < 20 * frame_samples::types; ++i) {
      auto f = samples_.of_type(i % frame_samples::types);
      if (auto* h = std::get_if<core::hello>(&f)) {
        // Unchanged it opens a session; in that nothing may be handed over.
        h->self.largest_message = h->self.byte_window = 0;
      }
      wire::encode(f, corpus_.emplace_back());
    }
  }

  // --- bytes ---

  // A frame of at most `size_max` bytes. Hardly any is a command.
  [[nodiscard]] std::string bytes(std::size_t size_max = 2'000) {
    std::string b;
    switch (below(8)) {
      case 0:
        b = noise(size_max);
        break;
      case 1:
        b = bomb();
        break;
      case 2:
        b = of_corpus();
        b.resize(below(b.size() + 1));
        break;
      case 3:
        b = of_corpus() + noise(40);
        break;
      case 4:
        b = wrong_types();
        break;
      default:
        b = mutant();
        break;
    }
    b.resize(std::min(b.size(), size_max));
    return b;
  }

  [[nodiscard]] std::string noise(std::size_t size_max) { return samples_.bytes(size_max); }

  // A frame of a good shape that announces much more than it holds.
  [[nodiscard]] std::string bomb() {
    using namespace std::string_view_literals;
    static constexpr std::array heads = {"\xdd\xff\xff\xff\xff"sv,     "\xdf\xff\xff\xff\xff"sv,
                                         "\xc6\xff\xff\xff\xff"sv,     "\xdb\xff\xff\xff\xff"sv,
                                         "\xc9\xff\xff\xff\xff\x01"sv, "\xdc\xff\xff"sv};
    switch (below(4)) {
      case 0:
        return std::string(10'000, '\x91');
      case 1:
        return std::string(heads[below(heads.size())]);
      case 2: {
        std::string deep;
        for (int i = 0; i < 3'000; ++i) {
          deep += "\xdc\xff\xff"sv;
        }
        return deep;
      }
      default: {
        // As a field of a command.
        std::string command = "\x94";
        command += char(1 + below(13));
        return command + "\x07\x01" + std::string(heads[below(heads.size())]);
      }
    }
  }

  [[nodiscard]] std::string mutant() {
    auto b = of_corpus();
    for (auto n = 1 + below(4); n > 0 && !b.empty(); --n) {
      // Mostly near the front, where the structure is.
      const auto at = std::size_t(below(coin() ? b.size() : std::min<std::size_t>(b.size(), 24)));
      switch (below(5)) {
        case 0:
          b[at] = char(unsigned(std::uint8_t(b[at])) ^ (1U << below(8)));
          break;
        case 1:
          b[at] = char(below(256));
          break;
        case 2:
          b.erase(at, 1);
          break;
        case 3:
          b.insert(at, 1, char(below(256)));
          break;
        default:
          b[at] = char(0xc0U + below(32));
          break;
      }
    }
    return b;
  }

  // --- numbers ---

  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return samples_.below(n); }
  [[nodiscard]] bool coin() { return samples_.coin(); }
  [[nodiscard]] bool rarely(std::uint64_t n) { return below(n) == 0; }
  // Small ones meet what is there.
  [[nodiscard]] std::uint64_t number() {
    static constexpr std::array<std::uint64_t, 8> edges = {
        0, 1, most, most - 1, most >> 1U, (most >> 1U) + 1, 1U << 31U, std::uint64_t{1} << 32U};
    switch (below(4)) {
      case 0:
        return edges[below(edges.size())];
      case 1:
        return samples_.number();
      default:
        return below(200);
    }
  }
  [[nodiscard]] std::uint64_t number_above_0() { return std::max<std::uint64_t>(number(), 1); }
  [[nodiscard]] duration time() {
    return coin() ? duration(duration::rep(number() & (most >> 1U))) : rarely(4) ? longest : duration(below(5'000));
  }
  [[nodiscard]] core::ranges ranges() {
    switch (below(5)) {
      case 0:
        return {};
      case 1:
        return core::ranges{{1, most}};
      case 2: {
        core::ranges many;
        for (std::uint64_t n = 0, at = number_above_0() % 1'000; n < below(300); ++n, at += 2) {
          many.append(at + 1);
        }
        return many;
      }
      case 3: {
        const auto first = number_above_0();
        return core::ranges{{first, first + std::min(number(), most - first)}};
      }
      default: {
        core::ranges some;
        std::uint64_t end = 0;
        for (auto n = below(6); n > 0 && end < most / 2; --n) {
          const auto first = end + 1 + below(10);
          end = first + below(10);
          some.append({first, end});
        }
        return some;
      }
    }
  }

  // --- sound commands with absurd contents, in a session of its own; few of them end it ---

  core::session_id session = 0;  // 0: none (any more)
  int sessions = 0, errors = 0, handed_over = 0;

  // What the peer says.
  void hear(const core::frame& f) {
    if (const auto* w = std::get_if<core::welcome>(&f)) {
      session = w->session;
      beats_ = heard_ = highest_tag_ = credit_ = 0;
      ++sessions;
    } else if (const auto* s = std::get_if<core::sender_heartbeat>(&f)) {
      heard_ = s->number;
    } else if (const auto* c = std::get_if<core::consumer_heartbeat>(&f)) {
      heard_ = c->number;
      credit_ = c->credit_tag;
    } else if (const auto* t = std::get_if<core::settle>(&f)) {
      credit_ = std::max(credit_, t->credit_tag);
    } else if (const auto* d = std::get_if<core::deliver>(&f)) {
      handed_over += int(d->items.size());
    } else if (const auto* e = std::get_if<core::error>(&f)) {
      ++errors;
      if (e->session == session &&
          (e->closed || e->code == core::error_code::hello_required || e->code == core::error_code::unknown_session)) {
        session = 0;
      }
    } else if (std::holds_alternative<core::bye_ok>(f)) {
      session = 0;
    }
  }

  [[nodiscard]] core::frame hello(core::greeting self) {
    core::hello h;
    h.self = std::move(self);
    h.connection = ++connection_;
    return h;
  }
  // One that nobody grants: another's name, a version of the future, terms out of range; or names of its own.
  [[nodiscard]] core::frame odd_hello(core::greeting self, const std::string& taken) {
    self.instance = number();
    switch (below(4)) {
      case 0:
        self.logical_id = taken;
        break;
      case 1:
        self.logical_id = "other-" + std::to_string(below(4));
        break;
      case 2: {
        auto f = hello(std::move(self));
        auto& h = std::get<core::hello>(f);
        h.version_min = 2 + std::uint32_t(below(9));
        h.version_max = std::numeric_limits<std::uint32_t>::max();
        return f;
      }
      default:
        if (auto* s = std::get_if<core::sender_greeting>(&self.part)) {
          s->heartbeat = time();
          s->lease = time();
        } else {
          self.logical_id = taken;
        }
        break;
    }
    return hello(std::move(self));
  }

  // What a healthy peer would say now and then, so that the session lives; but for the numbers in it.
  [[nodiscard]] core::frame beat(core::role own) {
    ++beats_;
    if (own == core::role::sender) {
      core::sender_heartbeat h;
      h.session = session;
      h.number = beats_;
      h.echo = heard_;
      h.highest_tag = highest_tag_;
      h.backlog_messages = number();
      h.next_size = number();
      h.epoch = h.lowest_held = 1;
      return h;
    }
    core::consumer_heartbeat h;
    h.session = session;
    h.number = beats_;
    h.echo = heard_;
    h.credit_tag = number();
    h.credit_bytes = number();
    return h;
  }

  // Late settlements in it are nobody's.
  [[nodiscard]] core::frame from_consumer() {
    switch (below(6)) {
      case 0:
      case 1:
        return core::consumer_heartbeat{session,  beat_number(), beat_echo(), ranges(), ranges(), ranges(),
                                        ranges(), ranges(),      number(),    number(), coin()};
      case 2:
        return complaint();
      case 3:
        return foreign();
      default: {
        core::settle f{session,  number(), ranges(), settlements(), {},
                       ranges(), ranges(), number(), number(),      number()};
        for (auto n = below(4); n > 0; --n) {
          f.late.push_back({number(), number() | nobodys, kind(), coin(), "late"});
        }
        return f;
      }
    }
  }

  [[nodiscard]] core::frame from_sender() {
    switch (below(8)) {
      case 0:
      case 1:
        return core::sender_heartbeat{session,  beat_number(), beat_echo(), number(), number(), number(),
                                      number(), number(),      ranges(),    number(), number(), coin()};
      case 2: {
        core::settled f{session, number(), ranges(), {}, {}, ranges()};
        for (auto n = below(20); n > 0; --n) {
          f.others.push_back({number_above_0(), kind(), core::verdict(1 + below(3)),
                              coin() ? std::optional(samples_.record()) : std::nullopt});
        }
        for (auto n = below(4); n > 0; --n) {
          f.late.push_back({number(), number_above_0(), kind(), core::verdict(1 + below(3))});
        }
        return f;
      }
      case 3:
        return complaint();
      case 4:
        return foreign();
      default: {
        if (rarely(200)) {
          return deliveries(number_above_0());  // mostly above its credit, or known already
        }
        const auto gap = rarely(8) ? below(10) : 0;
        const auto credit = credit_ > highest_tag_ + gap ? credit_ - highest_tag_ - gap : 0;
        auto f = deliveries(highest_tag_ + 1 + gap, rarely(200) ? most : credit);
        if (!f.items.empty()) {
          highest_tag_ = f.first_tag + f.items.size() - 1;
        }
        return f;
      }
    }
  }

  // At most `count`; some lie about their size.
  [[nodiscard]] core::deliver deliveries(std::uint64_t first_tag, std::uint64_t count = most) {
    core::deliver f{session, first_tag, {}};
    for (auto n = std::min({below(6), most - first_tag, count}); n > 0; --n) {
      auto i = samples_.item();
      i.number = rarely(8) ? i.number : 1 + below(1'000);
      i.doc.age = coin() ? duration{} : i.doc.age;
      i.doc.attempt = coin() ? 1 : i.doc.attempt;
      if (coin()) {
        i.doc.time_left.reset();
      }
      if (coin()) {
        // A few keys that meet again, with few payloads.
        i.doc.key = store("hostile-" + std::to_string(below(40)));
        i.doc.payload = store(std::string(1 + below(2), 'h'));
      } else if (rarely(20)) {
        i.doc.key = store(std::string(coin() ? 0 : 300, 'k'));
      }
      if (!rarely(400)) {
        i.size = (i.flags & core::delivery_flag::nil) != 0
                     ? below(100)
                     : i.doc.key.size() + i.doc.headers.size() + i.doc.payload.size();
      }
      f.items.push_back(std::move(i));
    }
    return f;
  }

  // Frees what the views of the commands made so far point to.
  void forget() {
    stored_.clear();
    samples_ = frame_samples(below(most));
  }

 private:
  std::uint64_t beat_number() { return rarely(200) ? number() : ++beats_; }
  std::uint64_t beat_echo() { return coin() ? number() : heard_; }

  core::frame complaint() {
    return core::error{core::error_code(1 + below(6)), coin() ? std::optional(session) : std::nullopt,
                       std::uint8_t(below(256)), rarely(80), "?"};
  }

  // A command that this role never sends, or that belongs to another time.
  core::frame foreign() {
    auto f = samples_.of_type(1 + below(frame_samples::types - 1));
    std::visit(
        [&](auto& c) {
          if constexpr (requires { c.session = session; }) {
            if (std::is_same_v<std::decay_t<decltype(c)>, core::bye> ? rarely(10) : coin()) {
              c.session = session;
            }
          }
        },
        f);
    return f;
  }

  std::vector<core::settlement_item> settlements() {
    std::vector<core::settlement_item> items;
    for (auto n = below(6); n > 0; --n) {
      items.push_back(
          {number_above_0(), kind(), time(), error_class(below(7)), reason(below(13)), "text", coin(), "result"});
    }
    return items;
  }

  core::settlement kind() { return core::settlement(1 + below(5)); }
  const std::string& of_corpus() { return corpus_[below(corpus_.size())]; }
  std::string_view store(std::string bytes) { return stored_.emplace_back(std::move(bytes)); }

  // A sound array of values of any kind, with a command's type in front.
  std::string wrong_types() {
    using namespace std::string_view_literals;
    static constexpr std::array values = {"\xc0"sv,
                                          "\xc2"sv,
                                          "\xc3"sv,
                                          "\x01"sv,
                                          "\xff"sv,
                                          "\xa1\xff"sv,
                                          "\xa1x"sv,
                                          "\x90"sv,
                                          "\x80"sv,
                                          "\xca\x3f\x80\x00\x00"sv,
                                          "\xd3\x80\x00\x00\x00\x00\x00\x00\x00"sv,
                                          "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"sv,
                                          "\xc4\x00"sv,
                                          "\xd4\x01\x01"sv,
                                          "\x92\x01\x02"sv,
                                          "\x81\xa1k\x01"sv};
    const auto count = 2 + below(14);
    std::string b(1, char(0x90U | (count & 0x0fU)));
    b += char(1 + below(12));
    for (std::uint64_t i = 1; i < count; ++i) {
      b += values[below(values.size())];
    }
    return b;
  }

  frame_samples samples_;
  std::vector<std::string> corpus_;
  std::deque<std::string> stored_;
  std::uint64_t beats_ = 0, heard_ = 0, highest_tag_ = 0, credit_ = 0, connection_ = 0;
};

}  // namespace onay::test
