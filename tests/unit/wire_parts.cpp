// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "support/catch.hpp"
#include "support/frame_compare.hpp"
#include "support/frame_samples.hpp"
#include "support/raw_msgpack.hpp"
#include "wire/codec.hpp"
#include "wire/cursor.hpp"

#include <limits>

using namespace onay;
using test::frame_samples;
using test::packed;
using test::raw_packer;
using wire::cursor;

namespace {

// A random value; `budget` bounds how many there are, `depth` how deep it goes.
void put_random(raw_packer& p, frame_samples& random, unsigned depth, int& budget) {
  --budget;
  switch (random.below(depth > 0 && budget > 0 ? 12 : 10)) {
    case 0:
      p.pack_nil();
      break;
    case 1:
      p.pack(random.coin());
      break;
    case 2:
      p.pack(random.number());
      break;
    case 3:
      p.pack(static_cast<std::int64_t>(random.number()));
      break;
    case 4:
      p.pack(1.5F);
      break;
    case 5:
      p.pack(2.5);
      break;
    case 6:
      test::put_bin(p, random.bytes(random.coin() ? 20 : 70'000));
      break;
    case 7:
      test::put_str(p, std::string(random.bytes(random.coin() ? 40 : 70'000).size(), 's'));
      break;
    case 8:
      p.pack_fix_int16(static_cast<std::int16_t>(random.number()));
      break;
    case 9: {
      const auto body = random.bytes(random.coin() ? 16 : 300);
      p.pack_ext(body.size(), 42).pack_ext_body(body.data(), static_cast<std::uint32_t>(body.size()));
      break;
    }
    case 10: {
      const auto n = static_cast<std::uint32_t>(random.below(20));
      p.pack_array(n);
      for (std::uint32_t i = 0; i < n; ++i) {
        put_random(p, random, depth - 1, budget);
      }
      break;
    }
    default: {
      const auto n = static_cast<std::uint32_t>(random.below(20));
      p.pack_map(n);
      for (std::uint32_t i = 0; i < n; ++i) {
        p.pack(i);
        put_random(p, random, depth - 1, budget);
      }
      break;
    }
  }
}

}  // namespace

TEST_CASE("the cursor steps over whatever msgpack-cxx packs, exactly", "[wire]") {
  frame_samples random(5);
  for (int i = 0; i < 1'500; ++i) {
    int budget = 60;
    const auto bytes = packed([&](raw_packer& p) { put_random(p, random, 6, budget); });
    std::size_t used = 0;
    static_cast<void>(msgpack::unpack(bytes.data(), bytes.size(), used));
    REQUIRE(used == bytes.size());
    cursor in(bytes);
    REQUIRE(in.skip(0));
    REQUIRE(in.at_end());
    for (int cut = 0; cut < 5; ++cut) {
      cursor shorter(std::string_view(bytes).substr(0, static_cast<std::size_t>(random.below(bytes.size()))));
      REQUIRE(!shorter.skip(0));
    }
  }
}

TEST_CASE("the cursor reads every width of integer as msgpack-cxx does", "[wire]") {
  frame_samples random(6);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = random.number();
    const auto as_signed = static_cast<std::int64_t>(number);
    for (const auto& bytes :
         {packed([&](raw_packer& p) { p.pack(number); }), packed([&](raw_packer& p) { p.pack(as_signed); }),
          packed([&](raw_packer& p) { p.pack(-(as_signed >> 1)); }),
          packed([&](raw_packer& p) { p.pack_fix_int8(static_cast<std::int8_t>(number)); }),
          packed([&](raw_packer& p) { p.pack_fix_int16(static_cast<std::int16_t>(number)); }),
          packed([&](raw_packer& p) { p.pack_fix_int32(static_cast<std::int32_t>(number)); }),
          packed([&](raw_packer& p) { p.pack_fix_int64(as_signed); }),
          packed([&](raw_packer& p) { p.pack_fix_uint8(static_cast<std::uint8_t>(number)); }),
          packed([&](raw_packer& p) { p.pack_fix_uint64(number); })}) {
      const auto theirs = msgpack::unpack(bytes.data(), bytes.size());
      const auto& object = theirs.get();
      const bool negative = object.type == msgpack::type::NEGATIVE_INTEGER;
      std::uint64_t u = 0;
      std::int64_t s = 0;
      cursor unsigned_in(bytes);
      REQUIRE(unsigned_in.read_uint(u) == !negative);
      cursor signed_in(bytes);
      const bool fits = negative || object.via.u64 <= std::uint64_t(std::numeric_limits<std::int64_t>::max());
      REQUIRE(signed_in.read_int(s) == fits);
      if (!negative) {
        REQUIRE(u == object.via.u64);
      }
      if (fits) {
        REQUIRE(s == object.as<std::int64_t>());
      }
    }
  }
}

TEST_CASE("headers keep bytes, order and repetitions, and none take no bytes", "[wire]") {
  const std::vector<header> headers{
      {"a", "1"}, {"", ""}, {"a", std::string("\0\xff", 2)}, {"b", std::string(70'000, 'x')}};
  const auto bytes = wire::encode_headers(headers);
  std::vector<header_view> views;
  REQUIRE(wire::decode_headers(bytes, views));
  REQUIRE(views.size() == headers.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    CHECK(views[i].name == headers[i].name);
    CHECK(views[i].value == headers[i].value);
  }
  CHECK(wire::encode_headers({}).empty());
  REQUIRE(wire::decode_headers("", views));
  CHECK(views.empty());
  CHECK(!wire::decode_headers("\x91\xc0", views));
  CHECK(
      !wire::decode_headers("\x92\xa1"
                            "a\xa1",
                            views));
}

TEST_CASE("a dead letter comes back with its record, headers and original bytes", "[wire]") {
  frame_samples random(8);
  const auto headers = wire::encode_headers(std::vector<header>{{"trace", "7"}, {"trace", "8"}});
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const auto record = random.record();
    const auto payload = random.bytes(400);
    const message_id id{random.number(), random.number(), 1 + random.number() / 2};
    const auto why = static_cast<reason>(1 + random.below(12));
    wire::encode_dead_letter({id, "worker-3", why, &record, i % 2 == 0 ? headers : std::string_view(), payload}, bytes);
    const auto letter = read_dead_letter(bytes);
    REQUIRE(letter);
    CHECK(letter->id == id);
    CHECK(letter->origin == "worker-3");
    CHECK(letter->why == why);
    CHECK(test::same(letter->record, record));
    CHECK(letter->headers.size() == (i % 2 == 0 ? 2U : 0U));
    CHECK(letter->payload == payload);
    if (i < 10) {
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        const std::vector<char> exact(bytes.data(), bytes.data() + size);  // so that a sanitizer sees its end
        REQUIRE(!read_dead_letter({exact.data(), exact.size()}));
      }
      REQUIRE(!read_dead_letter(bytes + '\0'));
    }
  }
}

TEST_CASE("an empty payload can be buried, and other payloads are not dead letters", "[wire]") {
  std::string bytes;
  wire::encode_dead_letter({{1, 2, 3}, "c", reason::rejected, nullptr, {}, {}}, bytes);
  const auto letter = read_dead_letter(bytes);
  REQUIRE(letter);
  CHECK(letter->payload.empty());
  CHECK(letter->headers.empty());

  CHECK(!read_dead_letter(""));
  CHECK(!read_dead_letter("hello"));
  CHECK(!read_dead_letter(test::repeated("\x91", 10'000)));
  auto later = bytes;
  later[1] = '\x02';
  CHECK(!read_dead_letter(later));
}

TEST_CASE("the key of a dead letter is its message id in 24 bytes, big-endian", "[wire]") {
  const auto key = wire::dead_letter_key({0x0102030405060708, 0xff, 0x1000});
  CHECK(key == std::string("\x01\x02\x03\x04\x05\x06\x07\x08"
                           "\0\0\0\0\0\0\0\xff"
                           "\0\0\0\0\0\0\x10\0",
                           24));
}
