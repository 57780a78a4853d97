// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/effects.hpp"

#include "support/catch.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

using namespace onay::sim;
using namespace std::chrono_literals;

namespace {

struct scratch {
  std::filesystem::path path;
  scratch() {
    auto text = (std::filesystem::temp_directory_path() / "onay-effects-XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path = text;
  }
  ~scratch() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::filesystem::path file(int n) const { return path / std::to_string(n); }
};

std::vector<event> all_of(event_reader& reader) {
  std::vector<event> events;
  for (event e; reader.next(e);) events.push_back(e);
  return events;
}

}  // namespace

TEST_CASE("what was written is read") {
  const scratch dir;
  {
    const event_writer out(dir.file(0), onay::boot_clock::now() - 1s);
    out.write(event_kind::start, 0xfedcba9876543210U, 3, 1500ms);
    out.write(event_kind::effect, 42, 70'000, 0ms);
  }
  event_reader reader({dir.file(0)});
  const auto events = all_of(reader);
  REQUIRE(events.size() == 2);
  CHECK(events[0].id == 0xfedcba9876543210U);
  CHECK(events[0].kind == event_kind::start);
  CHECK(events[0].attempt == 3);
  CHECK(events[0].age_ms == 1500);
  CHECK(events[0].at >= 10'000);
  CHECK(events[1].attempt == 70'000);
  CHECK(events[1].kind == event_kind::effect);
  CHECK(reader.torn() == 0);
}

TEST_CASE("files are merged by time and keep their own order") {
  const scratch dir;
  const auto now = onay::boot_clock::now();
  // The second file's clock began 10 s later, so its events lie before the other ones.
  const event_writer late(dir.file(0), now - 20s), early(dir.file(1), now - 10s);
  for (unsigned n = 0; n < 2000; ++n) {
    late.write(event_kind::start, 1, n + 1, 0ms);
    early.write(event_kind::start, 2, n + 1, 0ms);
  }
  event_reader reader({dir.file(0), dir.file(1), dir.file(2)});  // the third doesn't exist
  const auto events = all_of(reader);
  REQUIRE(events.size() == 4000);
  for (unsigned n = 0; n < 2000; ++n) {
    REQUIRE(events[n].life == 1);
    REQUIRE(events[n].attempt == n + 1);
    REQUIRE(events[2000 + n].life == 0);
    REQUIRE(events[2000 + n].attempt == n + 1);
  }
}

TEST_CASE("threads may write at the same time") {
  const scratch dir;
  {
    const event_writer out(dir.file(0), onay::boot_clock::now());
    const auto write = [&] {
      for (unsigned n = 0; n < 1000; ++n) out.write(event_kind::effect, n, 1, 0ms);
    };
    std::thread other(write);
    write();
    other.join();
  }
  event_reader reader({dir.file(0)});
  CHECK(all_of(reader).size() == 2000);
  CHECK(reader.torn() == 0);
}

TEST_CASE("half a record at the end is noticed") {
  const scratch dir;
  { event_writer(dir.file(0), onay::boot_clock::now()).write(event_kind::effect, 1, 1, 0ms); }
  std::ofstream(dir.file(0), std::ios::app | std::ios::binary) << "half";
  event_reader reader({dir.file(0)});
  CHECK(all_of(reader).size() == 1);
  CHECK(reader.torn() == 4);
}

TEST_CASE("a file that can't be written is refused at once") {
  CHECK_THROWS_AS(event_writer("/nonexistent/directory/file", onay::boot_clock::now()), std::system_error);
}
