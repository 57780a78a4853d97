// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "fuzz/decode_fuzz.hpp"
#include "support/catch.hpp"
#include "support/frame_samples.hpp"
#include "support/raw_msgpack.hpp"
#include "wire/codec.hpp"

#include <vector>

using namespace onay;
using test::frame_samples;

namespace {

// An exact copy on the heap, so that a sanitizer sees a read past the end.
std::optional<wire::unreadable> decode_exactly(std::string_view bytes, core::frame& out) {
  static std::vector<char> exact;
  exact.assign(bytes.begin(), bytes.end());
  exact.shrink_to_fit();
  return wire::decode({exact.data(), exact.size()}, out);
}

std::vector<std::string> bombs() {
  const std::string full = "\xff\xff\xff\xff";
  return {test::repeated("\x91", 10'000) + "\xc0",
          "\xdd" + full,
          "\xdf" + full,
          "\xc6" + full,
          "\xdb" + full,
          "\xc9" + full + "\x01",
          test::repeated("\xdc\xff\xff", 24'000),
          test::repeated("\xde\xff\xff", 24'000)};
}

// A command with one field after the known ones.
std::string bye_ok_with(std::string_view trailing) { return "\x93\x0b\x07" + std::string(trailing); }

}  // namespace

TEST_CASE("a frame cut at any byte is unreadable and never read past its end", "[wire]") {
  frame_samples samples(11);
  core::frame back;
  std::string bytes;
  for (std::uint64_t type = 0; type < frame_samples::types; ++type) {
    for (int i = 0; i < 6; ++i) {
      wire::encode(samples.of_type(type), bytes);
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        INFO("type " << type + 1 << " cut to " << size << " of " << bytes.size());
        REQUIRE(decode_exactly(std::string_view(bytes).substr(0, size), back));
      }
    }
  }
}

TEST_CASE("a frame with one more byte is unreadable", "[wire]") {
  frame_samples samples(12);
  core::frame back;
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    const auto f = samples.any();
    wire::encode(f, bytes);
    for (const char c : {'\0', '\xc0', '\xff', '\xc1'}) {
      const auto problem = decode_exactly(bytes + c, back);
      REQUIRE(problem);
      CHECK(problem->type == f.index() + 1);
    }
  }
}

// C47
TEST_CASE("a bomb as a frame, or as a field that nobody knows, is unreadable and allocates nothing", "[wire]") {
  for (const auto& bomb : bombs()) {
    core::frame back = core::deliver{};
    const auto problem = decode_exactly(bomb, back);
    REQUIRE(problem);
    CHECK(problem->type == 0);
    CHECK(!problem->session);
    CHECK(std::get<core::deliver>(back).items.capacity() == 0);
    const auto in_field = decode_exactly(bye_ok_with(bomb), back);
    REQUIRE(in_field);
    CHECK(in_field->type == 11);
    CHECK(in_field->session == 7U);
    // As the list of deliveries.
    REQUIRE(decode_exactly("\x94\x05\x07\x01" + bomb, back));
    CHECK((!std::holds_alternative<core::deliver>(back) || std::get<core::deliver>(back).items.capacity() <= 1));
  }
}

TEST_CASE("a frame, a page of text and a number are not commands", "[wire]") {
  core::frame back;
  using namespace std::string_literals;
  for (const auto& bytes : {""s, "GET / HTTP/1.1"s, "\x05"s, "\xc0"s, "\x90"s, "\x91\xc0"s, "\x92\xa1\x31\x07"s,
                            "\x92\x00\x07"s, "\x92\xff\x07"s, "\x82\x0b\x07\x01\x02"s}) {
    const auto problem = decode_exactly(bytes, back);
    REQUIRE(problem);
    CHECK(problem->type == 0);
  }
  const auto unknown = decode_exactly("\x92\x0d\x07", back);
  REQUIRE(unknown);
  CHECK(unknown->type == 13);
  CHECK(unknown->session == 7U);
}

TEST_CASE("an unreadable command says which field was wrong and keeps type and session", "[wire]") {
  core::frame back;
  const auto problem = decode_exactly(std::string("\x94\x05\xcd\x01\x00\x00\x90", 7), back);
  REQUIRE(problem);
  CHECK(problem->type == 5);
  CHECK(problem->session == 256U);
  CHECK(problem->text == "DELIVER: first tag: expected an integer in range");
  const auto missing = decode_exactly("\x93\x05\x07\x01", back);
  REQUIRE(missing);
  CHECK(missing->text == "DELIVER: deliveries: expected to be there");
}

TEST_CASE("nesting is allowed up to sixteen and no deeper", "[wire]") {
  core::frame back;
  // The command itself is the first level.
  CHECK(!decode_exactly(bye_ok_with(test::repeated("\x91", 14) + "\x90"), back));
  CHECK(!decode_exactly(bye_ok_with(test::repeated("\x91", 15) + "\xc0"), back));
  CHECK(decode_exactly(bye_ok_with(test::repeated("\x91", 15) + "\x90"), back));
  CHECK(decode_exactly(bye_ok_with(test::repeated("\x91", 16) + "\xc0"), back));
  CHECK(!decode_exactly(bye_ok_with(test::repeated("\x81\x01", 15) + "\xc0"), back));
  CHECK(decode_exactly(bye_ok_with(test::repeated("\x81\x01", 16) + "\xc0"), back));
}

TEST_CASE("codes outside their lists, wrong types and wrong roles of nil are unreadable", "[wire]") {
  core::frame back;
  const auto error_with = [](auto code, auto closed) {
    return test::packed([&](auto& p) {
      p.pack_array(6);
      p.pack(12).pack_nil().pack(code).pack(0).pack(closed);
      test::put_str(p, "");
    });
  };
  CHECK(!decode_exactly(error_with(1, false), back));
  CHECK(decode_exactly(error_with(0, false), back));
  CHECK(decode_exactly(error_with(7, false), back));
  CHECK(decode_exactly(error_with(1.5, false), back));
  CHECK(decode_exactly(error_with("1", false), back));
  CHECK(decode_exactly(error_with(1, 0), back));

  const auto wait_with = [](auto session, auto how_long) {
    return test::packed([&](auto& p) {
      p.pack_array(5);
      p.pack(3).pack(session).pack(1).pack(how_long);
      test::put_str(p, "");
    });
  };
  const msgpack::type::nil_t nil;
  CHECK(!decode_exactly(wait_with(nil, 1), back));
  CHECK(!decode_exactly(wait_with(nil, std::uint64_t(1) << 62U), back));
  CHECK(!decode_exactly(wait_with(nil, std::numeric_limits<std::int64_t>::max()), back));
  CHECK(decode_exactly(wait_with(5, 1), back));
  CHECK(decode_exactly(wait_with(nil, std::uint64_t(1) << 63U), back));
  CHECK(decode_exactly(wait_with(nil, -1), back));
  CHECK(decode_exactly(wait_with(nil, 1.5), back));
  CHECK(decode_exactly(wait_with(nil, true), back));
  // A float without a fraction isn't an integer either.
  CHECK(decode_exactly(std::string("\x95\x03\xc0\x01\xcb\x3f\xf0\0\0\0\0\0\0\xa0", 14), back));
  CHECK(decode_exactly("\x92\x0b\xc0", back));  // BYE_OK without a session
}

TEST_CASE("what a writer may put into one frame is readable, and denser frames are refused before memory is taken",
          "[wire]") {
  core::frame back;
  const auto nil_items = [](std::size_t n) {
    return test::packed([&](auto& p) {
      p.pack_array(4);
      p.pack(5).pack(1).pack(1);
      p.pack_array(static_cast<std::uint32_t>(n));
      for (; n > 0; --n) {
        p.pack_array(4).pack(1).pack(16).pack(0);
        test::put_bin(p, "");
      }
    });
  };
  CHECK(!wire::decode(nil_items(wire::deliveries_per_frame), back));
  back = core::deliver{};
  CHECK(wire::decode(nil_items(100'000), back));
  CHECK(std::get<core::deliver>(back).items.capacity() == 0);

  core::settle s;
  s.others.assign(wire::settlements_per_frame, core::settlement_item{.tag = 1, .text = {}, .result = {}});
  std::string bytes;
  wire::encode(s, bytes);
  CHECK(!wire::decode(bytes, back));

  core::settled answers;
  answers.others.resize(wire::answers_per_frame);
  for (auto& a : answers.others) {
    a.tag = 1;
  }
  wire::encode(answers, bytes);
  CHECK(!wire::decode(bytes, back));

  core::consumer_heartbeat h;
  for (std::uint64_t tag = 1; tag <= 2 * 65'536; tag += 2) {
    h.queued.append(tag);
  }
  wire::encode(h, bytes);
  CHECK(!wire::decode(bytes, back));
  h.queued.append(200'000);
  wire::encode(h, bytes);
  CHECK(wire::decode(bytes, back));
}

TEST_CASE("lengths of ids are checked", "[wire]") {
  core::hello h;
  std::string bytes;
  core::frame back;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}}) {
    h.self.logical_id = std::string(size, 'i');
    wire::encode(h, bytes);
    CHECK(wire::decode(bytes, back).has_value() == (size == 0 || size == 256));
  }
}

TEST_CASE("random changes to frames are read or refused, and what is read survives a second trip", "[wire][fuzz]") {
  frame_samples samples(20'240'602);
  std::string bytes;
  std::vector<std::string> corpus;
  for (int i = 0; i < 400; ++i) {
    wire::encode(samples.of_type(static_cast<std::uint64_t>(i) % frame_samples::types), bytes);
    corpus.push_back(bytes);
  }
  const auto record = samples.record();
  wire::encode_dead_letter({{1, 2, 3}, "c", reason::rejected, &record, {}, "payload"}, bytes);
  corpus.push_back(bytes);
  for (int i = 0; i < 200'000; ++i) {
    auto mutant = corpus[static_cast<std::size_t>(samples.below(corpus.size()))];
    for (auto n = 1 + samples.below(3); n > 0 && !mutant.empty(); --n) {
      // Mostly near the front, where the structure is.
      const auto reach = samples.coin() ? mutant.size() : std::min<std::size_t>(mutant.size(), 24);
      const auto at = static_cast<std::size_t>(samples.below(reach));
      switch (samples.below(5)) {
        case 0:
          mutant[at] = static_cast<char>(static_cast<unsigned>(mutant[at]) ^ (1U << samples.below(8)));
          break;
        case 1:
          mutant[at] = static_cast<char>(samples.below(256));
          break;
        case 2:
          mutant.erase(at, 1);
          break;
        case 3:
          mutant.insert(at, 1, static_cast<char>(samples.below(256)));
          break;
        default:
          mutant[at] = static_cast<char>(0xc0U + samples.below(32));
          break;
      }
    }
    test::fuzz_decode(mutant);
  }
  SUCCEED("200,000 mutants");
}
