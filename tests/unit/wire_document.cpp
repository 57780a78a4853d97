// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "support/catch.hpp"
#include "support/frame_compare.hpp"
#include "support/frame_samples.hpp"
#include "support/raw_msgpack.hpp"
#include "wire/codec.hpp"

#include <cmath>
#include <limits>

using namespace onay;
using core::document_state;
using test::packed;
using test::put_bin;
using test::put_str;
using test::raw_packer;

namespace {

// A DELIVER of three: the document in question between two healthy neighbours.
struct trio {
  std::string bytes;
  core::frame frame;

  trio(std::string_view document, std::uint8_t flags) {
    core::deliver d{1, 1, {}};
    d.items.resize(3);
    for (auto& item : d.items) {
      item.number = 1;
      item.doc.key = "healthy";
    }
    d.items[1].flags = flags;
    d.items[1].state = document_state::malformed;  // so that `raw` is written as it is
    d.items[1].raw = document;
    wire::encode(d, bytes);
    const auto problem = wire::decode(bytes, frame);
    REQUIRE(!problem);
    for (const std::size_t neighbour : {0U, 2U}) {
      CHECK(items()[neighbour].state == document_state::ok);
      CHECK(items()[neighbour].doc.key == "healthy");
    }
    CHECK(items()[1].raw == document);
  }
  [[nodiscard]] const std::vector<core::deliver_item>& items() const { return std::get<core::deliver>(frame).items; }
  [[nodiscard]] const core::deliver_item& middle() const { return items()[1]; }
};

document_state state_of(std::string_view document, std::uint8_t flags = 0) {
  return trio(document, flags).middle().state;
}

// [1, key, attempt, age, nil, nil, payload] with one field replaced by what `fill` packs.
template <class F>
std::string with_field(int index, F&& fill, std::uint32_t fields = 7) {
  return packed([&](raw_packer& p) {
    p.pack_array(fields);
    for (std::uint32_t i = 0; i < fields; ++i) {
      if (static_cast<int>(i) == index) {
        fill(p);
        continue;
      }
      switch (i) {
        case 0:
          p.pack(1);
          break;
        case 1:
          put_bin(p, "key");
          break;
        case 2:
          p.pack(1);
          break;
        case 3:
          p.pack(9);
          break;
        case 6:
          put_bin(p, "payload");
          break;
        default:
          p.pack_nil();
          break;
      }
    }
  });
}

std::string sound() {
  return with_field(-1, [](raw_packer&) {});
}

// By hand, since msgpack-cxx packs a float without a fraction as an integer.
constexpr std::string_view float_1("\xca\x3f\x80\x00\x00", 5);
constexpr std::string_view double_1("\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", 9);

// [1, key, ...] with bytes in the place of one single-byte field before the key or after it.
std::string with_raw(int index, std::string_view bytes) {
  auto document = sound();
  const std::size_t at = index == 0 ? 1 : 2 + 5 + static_cast<std::size_t>(index - 2);  // the key takes five
  return document.replace(at, 1, bytes);
}

template <class T>
std::string with_value(int index, T value) {
  return with_field(index, [&](raw_packer& p) { p.pack(value); });
}

}  // namespace

TEST_CASE("a sound document is read", "[wire]") {
  const auto document = sound();
  const trio t(document, 0);
  CHECK(t.middle().state == document_state::ok);
  CHECK(t.middle().doc.key == "key");
  CHECK(t.middle().doc.age == duration(9));
  CHECK(!t.middle().doc.time_left);
  CHECK(t.middle().doc.payload == "payload");
}

// C48, with all that follows
TEST_CASE("a document with one byte more or any bytes fewer is malformed", "[wire]") {
  const auto document = sound();
  CHECK(state_of(document + '\0') == document_state::malformed);
  CHECK(state_of(document + "\xc0") == document_state::malformed);
  for (std::size_t size = 0; size < document.size(); ++size) {
    CHECK(state_of(std::string_view(document).substr(0, size)) == document_state::malformed);
  }
}

TEST_CASE("text, maps and bombs as a document are malformed", "[wire]") {
  const std::string full = "\xff\xff\xff\xff";
  for (const auto& document :
       {std::string("GET / HTTP/1.1"), test::repeated("\x91", 10'000) + "\xc0", "\xdd" + full, "\xdf" + full,
        "\xc6" + full, "\xdb" + full, test::repeated("\xdc\xff\xff", 24'000), std::string("\xc1")}) {
    CHECK(state_of(document) == document_state::malformed);
    CHECK(state_of("\x98\x01" + document) == document_state::malformed);
    // In a field that nobody knows.
    auto trailing = sound();
    trailing[0] = '\x98';
    CHECK(state_of(trailing + document) == document_state::malformed);
  }
  const auto map = packed([](raw_packer& p) {
    p.pack_map(3);
    for (const auto* name : {"x-key", "key", "key"}) {
      put_str(p, name);
      put_bin(p, "v");
    }
  });
  CHECK(state_of(map) == document_state::malformed);
}

TEST_CASE("nesting in a document is allowed up to sixteen and no deeper", "[wire]") {
  auto document = sound();
  document[0] = '\x98';
  CHECK(state_of(document + test::repeated("\x91", 15) + "\xc0") == document_state::ok);
  CHECK(state_of(document + test::repeated("\x91", 16) + "\xc0") == document_state::malformed);
}

TEST_CASE("an attempt is an integer from 1 to 2^32-1 and nothing else", "[wire]") {
  CHECK(state_of(with_value(2, 1)) == document_state::ok);
  CHECK(state_of(with_value(2, 0xffffffffU)) == document_state::ok);
  CHECK(state_of(with_value(2, 0)) == document_state::malformed);
  CHECK(state_of(with_value(2, 0x100000000ULL)) == document_state::malformed);
  CHECK(state_of(with_value(2, std::numeric_limits<std::uint64_t>::max())) == document_state::malformed);
  CHECK(state_of(with_value(2, -1)) == document_state::malformed);
  CHECK(state_of(with_value(2, 1.5)) == document_state::malformed);
  CHECK(state_of(with_raw(2, "\x01")) == document_state::ok);
  CHECK(state_of(with_raw(2, float_1)) == document_state::malformed);
  CHECK(state_of(with_raw(2, double_1)) == document_state::malformed);
  CHECK(state_of(with_value(2, std::nan(""))) == document_state::malformed);
  CHECK(state_of(with_value(2, std::string("3"))) == document_state::malformed);
  CHECK(state_of(with_value(2, true)) == document_state::malformed);
  CHECK(state_of(with_field(2, [](raw_packer& p) { p.pack_nil(); })) == document_state::malformed);
  // A signed integer that isn't negative is the same number.
  CHECK(state_of(with_field(2, [](raw_packer& p) { p.pack_fix_int32(7); })) == document_state::ok);
  CHECK(state_of(with_field(2, [](raw_packer& p) { p.pack_fix_int64(-7); })) == document_state::malformed);
}

TEST_CASE("an age is microseconds from 0 to 2^63-1", "[wire]") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  for (const int field : {3, 4}) {
    CHECK(state_of(with_value(field, 0)) == document_state::ok);
    CHECK(state_of(with_value(field, most)) == document_state::ok);
    CHECK(state_of(with_value(field, std::uint64_t(1) << 63U)) == document_state::malformed);
    CHECK(state_of(with_value(field, -1)) == document_state::malformed);
    CHECK(state_of(with_value(field, std::nan(""))) == document_state::malformed);
    CHECK(state_of(with_raw(field, double_1)) == document_state::malformed);
  }
  CHECK(state_of(with_field(3, [](raw_packer& p) { p.pack_nil(); })) == document_state::malformed);
  const auto document = with_value(3, most);
  CHECK(trio(document, 0).middle().doc.age == duration::max());
}

TEST_CASE("bin and str keys give the same bytes, and a str must be UTF-8", "[wire]") {
  const auto as_bin = with_field(1, [](raw_packer& p) { put_bin(p, "caf\xc3\xa9"); });
  const auto as_str = with_field(1, [](raw_packer& p) { put_str(p, "caf\xc3\xa9"); });
  CHECK(trio(as_bin, 0).middle().doc.key == "caf\xc3\xa9");
  CHECK(trio(as_str, 0).middle().doc.key == "caf\xc3\xa9");
  for (const std::string_view bad : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80",
                                     "\x80", "eight by\xc3(", "\xf0\x8f\xbf\xbf", "\xf8\x88\x80\x80\x80"}) {
    CHECK(state_of(with_field(1, [&](raw_packer& p) { put_bin(p, bad); })) == document_state::ok);
    CHECK(state_of(with_field(1, [&](raw_packer& p) { put_str(p, bad); })) == document_state::malformed);
    CHECK(state_of(with_field(6, [&](raw_packer& p) { put_str(p, bad); })) == document_state::malformed);
  }
  CHECK(state_of(with_value(1, 5)) == document_state::malformed);
}

TEST_CASE("hostile keys are told apart by state, with the rest of the document kept", "[wire]") {
  const auto with_key = [](const std::string& key) { return with_field(1, [&](raw_packer& p) { put_bin(p, key); }); };
  const auto empty = with_key("");
  CHECK(trio(empty, 0).middle().state == document_state::missing_key);
  CHECK(trio(empty, 0).middle().doc.payload == "payload");
  CHECK(state_of(with_key(std::string(1, '\0'))) == document_state::ok);
  CHECK(trio(with_key(std::string("a\0b", 3)), 0).middle().doc.key.size() == 3);
  CHECK(state_of(with_key(std::string(255, '\xfe'))) == document_state::ok);
  CHECK(state_of(with_key(std::string(256, 'k'))) == document_state::key_too_long);
  CHECK(state_of(with_key(std::string(4'096, 'k'))) == document_state::key_too_long);
}

// C50
TEST_CASE("an empty payload is a payload; nil and none are not", "[wire]") {
  CHECK(state_of(with_field(6, [](raw_packer& p) { put_bin(p, ""); })) == document_state::ok);
  CHECK(state_of(with_field(6, [](raw_packer& p) { put_str(p, ""); })) == document_state::ok);
  CHECK(state_of(with_field(6, [](raw_packer& p) { p.pack_nil(); })) == document_state::malformed);
  CHECK(state_of(with_field(
            -1, [](raw_packer&) {}, 6)) == document_state::malformed);
  CHECK(state_of("") == document_state::malformed);
}

TEST_CASE("another version, or none, is set aside as such when the document is sound", "[wire]") {
  CHECK(state_of(with_value(0, 2)) == document_state::unsupported_version);
  CHECK(state_of(with_value(0, 0)) == document_state::unsupported_version);
  CHECK(state_of(with_value(0, -1)) == document_state::unsupported_version);
  CHECK(state_of(with_value(0, std::numeric_limits<std::uint64_t>::max())) == document_state::unsupported_version);
  CHECK(state_of(with_field(0, [](raw_packer& p) { p.pack_nil(); })) == document_state::unsupported_version);
  CHECK(state_of("\x90") == document_state::unsupported_version);
  CHECK(state_of("\x92\x02\x82\x01\x02\xa1x\x90") == document_state::unsupported_version);
  CHECK(state_of(with_value(0, 2) + '\0') == document_state::malformed);
  CHECK(state_of("\x92\x02") == document_state::malformed);
  CHECK(state_of(with_raw(0, double_1)) == document_state::malformed);
  CHECK(state_of(with_value(0, std::string("1"))) == document_state::malformed);
  CHECK(state_of(with_value(0, true)) == document_state::malformed);
}

TEST_CASE("version 1 with fields that nobody knows is read", "[wire]") {
  const auto document = with_field(
      9, [](raw_packer& p) { p.pack_map(1).pack(1).pack(2.5); }, 10);
  const trio t(document, 0);
  CHECK(t.middle().state == document_state::ok);
  CHECK(t.middle().doc.payload == "payload");
}

TEST_CASE("headers are checked when the document is read", "[wire]") {
  const auto with_headers = [](std::string_view headers) {
    return with_field(5, [&](raw_packer& p) { put_bin(p, headers); });
  };
  CHECK(state_of(with_headers("\x90")) == document_state::ok);
  CHECK(state_of(with_headers("\x92\xa1"
                              "a\xc4\x01z")) == document_state::ok);
  CHECK(state_of(with_headers("")) == document_state::malformed);
  CHECK(state_of(with_headers("\x91\xa1"
                              "a")) == document_state::malformed);
  CHECK(state_of(with_headers("\x92\xa1"
                              "a\x01")) == document_state::malformed);
  CHECK(state_of(with_headers("\x92\xa1"
                              "a\xa1\xff")) == document_state::malformed);
  CHECK(state_of(with_headers("\x90\x90")) == document_state::malformed);
  CHECK(state_of(with_headers("\xdd\xff\xff\xff\xfe")) == document_state::malformed);
}

TEST_CASE("a condemned document needs its reason; the record may be nil", "[wire]") {
  constexpr auto condemned = core::delivery_flag::condemned;
  CHECK(state_of(sound(), condemned) == document_state::malformed);
  const auto with_verdict = [](auto why) {
    return with_field(
        7, [&](raw_packer& p) { p.pack(why); }, 9);
  };
  const auto document = with_verdict(4);
  CHECK(trio(document, condemned).middle().doc.why == reason::rejected);
  CHECK(!trio(document, condemned).middle().doc.record);
  CHECK(trio(document, 0).middle().doc.why == reason::none);
  CHECK(state_of(with_verdict(0), condemned) == document_state::malformed);
  CHECK(state_of(with_verdict(13), condemned) == document_state::malformed);
  CHECK(state_of(with_verdict(4) + "\xc0", condemned) == document_state::malformed);
}

TEST_CASE("a document that can't be used is written again as it came", "[wire]") {
  const auto document = with_value(2, 1.5);
  const trio t(document, 0);
  std::string again;
  wire::encode(t.frame, again);
  CHECK(again == t.bytes);
}
