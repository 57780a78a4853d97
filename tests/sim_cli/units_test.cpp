// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/units.hpp"

#include "support/catch.hpp"

#include <string>

using namespace onay::sim;
using namespace std::chrono_literals;

TEST_CASE("durations are read with their unit") {
  CHECK(parse_duration("250ms") == 250ms);
  CHECK(parse_duration("5s") == 5s);
  CHECK(parse_duration("1.5s") == 1500ms);
  CHECK(parse_duration("0.000001s") == 1us);
  CHECK(parse_duration("2m") == 2min);
  CHECK(parse_duration("24h") == 24h);
  CHECK(parse_duration("7us") == 7us);
  CHECK(parse_duration("0s") == 0s);
}

TEST_CASE("what is no duration is refused") {
  for (const auto* text : {"",
                           "5",
                           "s",
                           "-1s",
                           "+1s",
                           "1 s",
                           " 1s",
                           "1s ",
                           "1.s",
                           ".5s",
                           "1e3s",
                           "1d",
                           "1S",
                           "0.5us",
                           "1.05us",
                           "0.0000001s",
                           "1m30s",
                           "99999999999999999999s",
                           "9223372036854775807s",
                           "nans"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("a duration is written so that it is read back") {
  for (const auto d : {onay::duration(0), onay::duration(1), onay::duration(1500), onay::duration(1'500'000),
                       onay::duration(5'000'000), onay::duration(60'000'000), onay::duration(86'400'000'000)}) {
    CHECK(parse_duration(to_text(d)) == d);
  }
  CHECK(to_text(1500ms) == "1500ms");
  CHECK(to_text(5s) == "5s");
  CHECK(to_text(24h) == "24h");
}

TEST_CASE("sizes are read with or without a unit") {
  CHECK(parse_size("4096") == 4096);
  CHECK(parse_size("1B") == 1);
  CHECK(parse_size("64KiB") == 65536);
  CHECK(parse_size("4MiB") == 4U << 20U);
  CHECK(parse_size("2GiB") == std::uint64_t{2} << 30U);
  for (const auto* text : {"", "KiB", "-1", "1.5MiB", "1MB", "1k", "99999999999999999999", "18446744073709551615GiB"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_size(text));
  }
  CHECK(size_to_text(64U << 20U) == "64MiB");
  CHECK(size_to_text(1000) == "1000");
}
