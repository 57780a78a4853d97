// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "support/catch.hpp"
#include "support/frame_compare.hpp"
#include "support/frame_samples.hpp"
#include "support/raw_msgpack.hpp"
#include "wire/codec.hpp"

using namespace onay;
using test::frame_samples;
using test::same;

namespace {

std::string encoded(const core::frame& f) {
  std::string out;
  wire::encode(f, out);
  return out;
}

}  // namespace

TEST_CASE("a command of any type and content comes back as it was", "[wire]") {
  frame_samples samples(20240601);
  std::string bytes;
  core::frame back;
  for (std::uint64_t type = 0; type < frame_samples::types; ++type) {
    for (int i = 0; i < 300; ++i) {
      const auto sent = samples.of_type(type);
      wire::encode(sent, bytes);
      const auto problem = wire::decode(bytes, back);
      INFO("type " << type + 1 << ", round " << i << ": " << (problem ? problem->text : ""));
      REQUIRE(!problem);
      REQUIRE(same(sent, back));
    }
  }
}

TEST_CASE("msgpack-cxx reads what we write, and would have written the same bytes", "[wire]") {
  frame_samples samples(7);
  for (int i = 0; i < 2'000; ++i) {
    const auto bytes = encoded(samples.any());
    std::size_t used = 0;
    const auto unpacked = msgpack::unpack(bytes.data(), bytes.size(), used);
    REQUIRE(used == bytes.size());
    test::text_stream again;
    msgpack::pack(again, unpacked.get());
    REQUIRE(again.bytes == bytes);
  }
}

TEST_CASE("the fields of a delivery are where the grammar puts them", "[wire]") {
  core::deliver d;
  d.session = 0x1122334455667788;
  d.first_tag = 70'000;
  core::deliver_item item;
  item.number = 300;
  item.flags = core::delivery_flag::suspect;
  item.size = 12;
  item.doc.key = "order-7";
  item.doc.attempt = 2;
  item.doc.age = duration(1'500);
  item.doc.payload = std::string_view("\0abcd", 5);
  d.items.push_back(item);
  const auto bytes = encoded(d);

  const auto root = msgpack::unpack(bytes.data(), bytes.size());
  const auto frame = root.get().via.array;
  REQUIRE(frame.size == 4);
  CHECK(frame.ptr[0].as<unsigned>() == 5);
  CHECK(frame.ptr[1].as<std::uint64_t>() == d.session);
  CHECK(frame.ptr[2].as<std::uint64_t>() == 70'000);
  const auto first = frame.ptr[3].via.array.ptr[0].via.array;
  REQUIRE(first.size == 4);
  CHECK(first.ptr[0].as<unsigned>() == 300);
  CHECK(first.ptr[1].as<unsigned>() == 1);
  CHECK(first.ptr[2].as<unsigned>() == 12);
  const auto inner = first.ptr[3].via.bin;
  const auto doc_root = msgpack::unpack(inner.ptr, inner.size);
  const auto doc = doc_root.get().via.array;
  REQUIRE(doc.size == 7);
  CHECK(doc.ptr[0].as<unsigned>() == 1);
  CHECK(std::string_view(doc.ptr[1].via.bin.ptr, doc.ptr[1].via.bin.size) == "order-7");
  CHECK(doc.ptr[2].as<unsigned>() == 2);
  CHECK(doc.ptr[3].as<unsigned>() == 1'500);
  CHECK(doc.ptr[4].is_nil());
  CHECK(doc.ptr[5].is_nil());
  CHECK(std::string_view(doc.ptr[6].via.bin.ptr, doc.ptr[6].via.bin.size) == item.doc.payload);
}

TEST_CASE("ranges travel as gap and length less one", "[wire]") {
  core::bye b{9, 30, {}, {}, {}};
  b.running = {{3, 3}, {5, 8}, {20, 30}};
  const auto bytes = encoded(b);
  const auto root = msgpack::unpack(bytes.data(), bytes.size());
  const auto list = root.get().via.array.ptr[3].as<std::vector<unsigned>>();
  CHECK(list == std::vector<unsigned>{3, 0, 2, 3, 12, 10});
}

TEST_CASE("ranges reach the largest tag and not past it", "[wire]") {
  constexpr auto top = std::numeric_limits<std::uint64_t>::max();
  core::bye b{9, top, {}, {}, {}};
  b.running = {{1, 1}, {top - 1, top}};
  core::frame back;
  REQUIRE(!wire::decode(encoded(b), back));
  CHECK(std::get<core::bye>(back).running == b.running);

  const auto with_ranges = [](auto... numbers) {
    return test::packed([&](auto& p) {
      p.pack_array(6);
      p.pack(10).pack(9).pack(5);
      p.pack_array(sizeof...(numbers));
      (p.pack(numbers), ...);
      p.pack_array(0).pack_array(0);
    });
  };
  CHECK(!wire::decode(with_ranges(1, top - 1), back));
  CHECK(wire::decode(with_ranges(2, top - 1), back));        // length runs over
  CHECK(wire::decode(with_ranges(1, top - 1, 1, 0), back));  // gap runs over
  CHECK(wire::decode(with_ranges(1, 0, 0, 0), back));        // not rising
  CHECK(wire::decode(with_ranges(0, 0), back));              // tag 0
  CHECK(wire::decode(with_ranges(1, 0, 2), back));           // half a range
  CHECK(wire::decode(with_ranges(1, -1), back));
  REQUIRE(!wire::decode(with_ranges(1, 0, 1, 0), back));  // adjacent ones are one
  CHECK(std::get<core::bye>(back).running == core::ranges{{1, 2}});
}

TEST_CASE("a received view points into the frame, and the vectors of the last command serve again", "[wire]") {
  core::deliver d{1, 1, {}};
  core::deliver_item item;
  item.number = 1;
  item.doc.key = "k";
  item.doc.payload = "payload";
  d.items.assign(20, item);
  const auto bytes = encoded(d);
  core::frame back;
  REQUIRE(!wire::decode(bytes, back));
  const auto* items = std::get<core::deliver>(back).items.data();
  CHECK(items[7].doc.payload.data() > bytes.data());
  CHECK(items[7].doc.payload.data() < bytes.data() + bytes.size());

  // A condemned document leaves nothing behind for the next one in its place.
  d.items[0].flags = core::delivery_flag::condemned;
  d.items[0].doc.why = reason::rejected;
  retry_record record;
  record.attempts = 3;
  d.items[0].doc.record = std::make_shared<const retry_record>(record);
  d.items[0].doc.time_left = duration(1);
  const auto second = encoded(d);
  REQUIRE(!wire::decode(second, back));
  CHECK(same(core::frame(d), back));
  REQUIRE(!wire::decode(bytes, back));
  CHECK(std::get<core::deliver>(back).items.data() == items);
  CHECK(!std::get<core::deliver>(back).items[0].doc.record);
  CHECK(!std::get<core::deliver>(back).items[0].doc.time_left);
  CHECK(std::get<core::deliver>(back).items[0].doc.why == reason::none);
}

TEST_CASE("a nil delivery carries an empty document and is sound", "[wire]") {
  core::deliver d{1, 4, {}};
  d.items.resize(1);
  d.items[0].number = 8;
  d.items[0].size = 99;
  d.items[0].flags = core::delivery_flag::nil;
  core::frame back;
  const auto bytes = encoded(d);
  REQUIRE(!wire::decode(bytes, back));
  const auto& item = std::get<core::deliver>(back).items.at(0);
  CHECK(item.state == core::document_state::ok);
  CHECK(item.size == 99);
  CHECK(item.raw.empty());
}

TEST_CASE("unknown fields at the end of commands and of what they hold are ignored", "[wire]") {
  const auto extra = [](auto& p) {
    p.pack_map(1);
    test::put_str(p, "later");
    p.pack_array(2).pack(1.5).pack(-3);
    p.pack_ext(3, 5).pack_ext_body("abc", 3);
  };
  const auto bytes = test::packed([&](auto& p) {
    p.pack_array(9);
    p.pack(9).pack(77).pack(5);  // SETTLED
    p.pack_array(2).pack(1).pack(3);
    p.pack_array(1);  // others
    p.pack_array(6).pack(9).pack(4).pack(1);
    p.pack_array(11).pack(2).pack_nil().pack(-5).pack(4);
    test::put_str(p, "no such row");
    p.pack_nil().pack_nil().pack(1);
    test::put_bin(p, "key");
    extra(p);  // of the record
    extra(p);  // of the answer
    p.pack_array(0);
    p.pack_array(0);
    extra(p);  // of the command
  });
  core::frame back;
  const auto problem = wire::decode(bytes, back);
  INFO((problem ? problem->text : ""));
  REQUIRE(!problem);
  const auto& f = std::get<core::settled>(back);
  CHECK(f.accepted == core::ranges{{1, 4}});
  REQUIRE(f.others.size() == 1);
  REQUIRE(f.others[0].record);
  CHECK(f.others[0].record->operation_key == "key");
  CHECK(f.others[0].record->last_error_text == "no such row");
  CHECK(f.others[0].record->last_attempt == utc_time(duration(-5)));
}

TEST_CASE("texts are cut between characters when written, and are str only when they are UTF-8", "[wire]") {
  const auto text_of = [](std::string text) {
    core::frame back;
    REQUIRE(!wire::decode(encoded(core::wait{1, duration(0), std::move(text)}), back));
    return std::get<core::wait>(back).text;
  };
  CHECK(text_of(std::string(5'000, 'x')) == std::string(1'024, 'x'));
  CHECK(text_of(std::string(1'023, 'x') + "\xc3\xa9") == std::string(1'023, 'x'));
  CHECK(text_of(std::string(1'022, 'x') + "\xc3\xa9").size() == 1'024);
  CHECK(text_of(std::string(1'021, 'x') + "\xf0\x9f\x98\x80").size() == 1'021);
  CHECK(text_of(std::string(3'000, '\x80')).size() == 1'021);
  CHECK(text_of("\xff\xfe") == "\xff\xfe");
  CHECK(encoded(core::wait{1, duration(0), "h\xc3\xa9"}).substr(5) == "\xa3h\xc3\xa9");
  CHECK(encoded(core::wait{1, duration(0), "h\xff"}).substr(5) == "\xc4\x02h\xff");

  core::frame back;
  const auto too_long = test::packed([](auto& p) {
    p.pack_array(5);
    p.pack(3).pack_nil().pack(1).pack(1);
    test::put_str(p, std::string(1'025, 'x'));
  });
  CHECK(wire::decode(too_long, back));
}
