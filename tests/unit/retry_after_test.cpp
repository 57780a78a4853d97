// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include <onay/outcome.hpp>

#include "support/catch.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>

using onay::parse_retry_after;
using onay::retry_after_seconds;
using namespace std::chrono;
using namespace std::chrono_literals;

namespace {

system_clock::time_point at(year_month_day date, microseconds time_of_day = {}) { return sys_days(date) + time_of_day; }

const system_clock::time_point now = at(1994y / November / 6d, 8h + 49min + 34s);

// Sets TZ for a scope, the way a process that runs elsewhere would have it.
class time_zone {
 public:
  explicit time_zone(const char* name) {
    if (const char* before = std::getenv("TZ")) {
      before_ = before;
    }
    setenv("TZ", name, 1);
    tzset();
  }
  ~time_zone() {
    before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
    tzset();
  }
  time_zone(const time_zone&) = delete;
  time_zone& operator=(const time_zone&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("whole seconds are read, with blanks around them", "[retry_after]") {
  CHECK(parse_retry_after("3", now) == 3s);
  CHECK(parse_retry_after(" 3 ", now) == 3s);
  CHECK(parse_retry_after("\t0120\t ", now) == 120s);
  CHECK(parse_retry_after("0", now) == 0s);
}

TEST_CASE("what is neither seconds nor a date gives nothing", "[retry_after]") {
  for (std::string_view text : {"", " ", "-1", "+1", "abc", "1e3", "3.5", "3s", "0x10", "1 2", "1,2", "NaN", "inf"}) {
    INFO("\"" << text << '"');
    CHECK_FALSE(parse_retry_after(text, now));
  }
  CHECK_FALSE(parse_retry_after(std::string_view("3\0", 2), now));
  CHECK_FALSE(parse_retry_after(std::string_view{}, now));
}

TEST_CASE("seconds too many for a duration become the largest one", "[retry_after]") {
  CHECK(parse_retry_after("9223372037", now) == seconds(9'223'372'037));
  CHECK(parse_retry_after("9223372036854", now) == seconds(9'223'372'036'854));
  CHECK(parse_retry_after("9223372036855", now) == microseconds::max());
  CHECK(parse_retry_after("9223372036854775807", now) == microseconds::max());
  CHECK(parse_retry_after("18446744073709551617", now) == microseconds::max());
  CHECK(parse_retry_after(std::string(5000, '9'), now) == microseconds::max());
  CHECK(parse_retry_after(std::string(5000, '0') + "7", now) == 7s);
}

TEST_CASE("a date in any of the three formats is the time until then", "[retry_after]") {
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now) == 3s);
  CHECK(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", now) == 3s);
  CHECK(parse_retry_after("Sun Nov  6 08:49:37 1994", now) == 3s);
  CHECK(parse_retry_after("  Sun Nov 06 08:49:37 1994 ", now) == 3s);
  CHECK(parse_retry_after("Wed Nov 16 08:49:37 1994", now) == days(10) + 3s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now - 250ms) == 3250ms);
}

TEST_CASE("a date in the past is zero", "[retry_after]") {
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:34 GMT", now) == 0s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:33 GMT", now) == 0s);
  CHECK(parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", at(2026y / January / 1d)) == 0s);
  CHECK(parse_retry_after("Sat, 01 Jan 0000 00:00:00 GMT", now) == 0s);
}

TEST_CASE("a date beyond the system clock's range doesn't wrap", "[retry_after]") {
  CHECK(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", now) ==
        microseconds(sys_days(9999y / December / 31d) + 24h - 1s - time_point_cast<microseconds>(now)));
}

TEST_CASE("dates that don't exist or aren't spelled out give nothing", "[retry_after]") {
  for (std::string_view text : {
           "Sun, 31 Apr 1994 08:49:37 GMT",     // no such day
           "Sun, 00 Nov 1994 08:49:37 GMT",     //
           "Tue, 29 Feb 1994 08:49:37 GMT",     // no leap year
           "Sun, 06 Nov 1994 24:00:00 GMT",     //
           "Sun, 06 Nov 1994 08:60:37 GMT",     //
           "Sun, 06 Nov 1994 08:49:61 GMT",     //
           "Sun, 06 Nov 1994 08:49:37",         // no zone
           "Sun, 06 Nov 1994 08:49:37 UTC",     //
           "Sun, 06 Nov 1994 08:49:37 +0100",   //
           "Sun, 06 Nov 1994 08:49:37 GMT+1",   //
           "Sun, 6 Nov 1994 08:49:37 GMT",      //
           "Sun, -6 Nov 1994 08:49:37 GMT",     //
           "Sun, 06 Nov 94 08:49:37 GMT",       //
           "Sun, 06 Nov 1994  8:49:37 GMT",     //
           "Son, 06 Nov 1994 08:49:37 GMT",     //
           "Sun, 06 Now 1994 08:49:37 GMT",     //
           "06 Nov 1994 08:49:37 GMT",          //
           "Sun, 06-Nov-94 08:49:37 GMT",       // RFC 850 spells the day out
           "Sunday, 06-Nov-1994 08:49:37 GMT",  //
           "Sunday, 06-Nov-94 08:49:37",        //
           "Sun Nov 6 08:49:37 1994",           // asctime pads the day
           "Sun Nov  6 08:49:37 1994 GMT",      //
           "Sun Nov  6 08:49:37 19945",         //
           "Sun Nov  6 08:49: 7 1994",          //
           "Sun Nov    08:49:37 1994",          //
           "1994-11-06T08:49:37Z",
       }) {
    INFO(text);
    CHECK_FALSE(parse_retry_after(text, now));
  }
  CHECK_FALSE(parse_retry_after(std::string_view("Sun, 06 Nov 1994 08:49:37 GMT\0", 30), now));
}

TEST_CASE("every beginning of a date gives nothing", "[retry_after]") {
  for (std::string_view text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      CHECK_FALSE(parse_retry_after(text.substr(0, size), now));
    }
  }
}

TEST_CASE("a leap second is the first second of the next minute", "[retry_after]") {
  CHECK(parse_retry_after("Sat, 31 Dec 2016 23:59:60 GMT", at(2016y / December / 31d, 23h + 59min + 58s)) == 2s);
}

TEST_CASE("a year of two digits is the one within fifty years ahead", "[retry_after]") {
  const auto in_2020 = at(2020y / June / 15d, 12h);
  CHECK(parse_retry_after("Monday, 15-Jun-20 12:00:05 GMT", in_2020) == 5s);
  CHECK(parse_retry_after("Sunday, 15-Jun-69 12:00:00 GMT", in_2020) ==
        microseconds(sys_days(2069y / June / 15d) - sys_days(2020y / June / 15d)));
  CHECK(parse_retry_after("Sunday, 15-Jun-70 12:00:00 GMT", in_2020) ==
        microseconds(sys_days(2070y / June / 15d) - sys_days(2020y / June / 15d)));
  CHECK(parse_retry_after("Sunday, 15-Jun-70 12:00:01 GMT", in_2020) == 0s);  // more than 50 years: 1970
  CHECK(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", in_2020) == 0s);
  // Over the end of a century, and with a leap day that only some of the candidates have.
  CHECK(parse_retry_after("Friday, 01-Jan-00 00:00:00 GMT", at(2099y / December / 31d, 23h + 59min + 50s)) == 10s);
  CHECK(parse_retry_after("Tuesday, 29-Feb-00 00:00:00 GMT", at(2000y / February / 28d)) == days(1));
  CHECK_FALSE(parse_retry_after("Monday, 29-Feb-00 00:00:00 GMT", at(2100y / February / 28d)));
  CHECK(parse_retry_after("Tuesday, 29-Feb-00 00:00:00 GMT", at(2049y / February / 28d)) == 0s);
}

TEST_CASE("dates mean the same in every time zone, also on the day the clocks change", "[retry_after]") {
  for (const char* zone : {"UTC", "Asia/Kolkata", "America/New_York", "EST5EDT,M3.2.0,M11.1.0"}) {
    INFO(zone);
    const time_zone in(zone);
    // 2024-11-03, 06:00 UTC: New York goes from 02:00 to 01:00.
    const auto before_change = at(2024y / November / 3d, 5h + 59min + 59s);
    CHECK(parse_retry_after("Sun, 03 Nov 2024 06:00:02 GMT", before_change) == 3s);
    CHECK(parse_retry_after("Sunday, 03-Nov-24 06:00:02 GMT", before_change) == 3s);
    CHECK(parse_retry_after("Sun Nov  3 06:00:02 2024", before_change) == 3s);
    CHECK(parse_retry_after("Sun, 10 Mar 2024 07:00:02 GMT", at(2024y / March / 10d, 6h + 59min + 59s)) == 3s);
  }
}

// The reference is the C library's calendar, which shares no code with ours.
TEST_CASE("random dates agree with gmtime", "[retry_after]") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const std::time_t then = static_cast<std::time_t>(random() % 253'402'300'800);  // before the year 10000
    std::tm fields{};
    gmtime_r(&then, &fields);
    std::array<char, 64> text{};
    const char* format = i % 2 == 0 ? "%a, %d %b %Y %H:%M:%S GMT" : "%a %b %e %H:%M:%S %Y";
    REQUIRE(std::strftime(text.data(), text.size(), format, &fields) > 0);
    INFO(text.data());
    REQUIRE(parse_retry_after(text.data(), system_clock::time_point{}) == seconds(then));
  }
}

TEST_CASE("random texts are refused or give a wait that isn't negative", "[retry_after]") {
  std::mt19937_64 random(5);
  const std::string_view pieces[] = {"Sun", "Sunday", ", ",  " ",   "06",
                                     "6",   "-",      "Nov", "94",  "1994",
                                     "08",  ":",      "49",  "GMT", std::string_view("\0", 1)};
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 14; n > 0; --n) {
      text += pieces[random() % std::size(pieces)];
    }
    const auto result = parse_retry_after(text, now);
    REQUIRE((!result || *result >= 0s));
  }
}

TEST_CASE("a number of seconds becomes a duration or nothing", "[retry_after]") {
  CHECK(retry_after_seconds(0) == 0s);
  CHECK(retry_after_seconds(-0.0) == 0s);
  CHECK(retry_after_seconds(3) == 3s);
  CHECK(retry_after_seconds(0.1) == 100ms);
  CHECK(retry_after_seconds(2.7) == 2700ms);
  CHECK(retry_after_seconds(1e-9) == 0s);
  CHECK(retry_after_seconds(9223372037.0) == seconds(9'223'372'037));
  CHECK(retry_after_seconds(9e12) == seconds(9'000'000'000'000));
  CHECK(retry_after_seconds(9223372036855.0) == microseconds::max());
  CHECK(retry_after_seconds(9.3e18) == microseconds::max());
  CHECK(retry_after_seconds(std::numeric_limits<double>::max()) == microseconds::max());
  CHECK(retry_after_seconds(HUGE_VAL) == microseconds::max());
  CHECK_FALSE(retry_after_seconds(-1));
  CHECK_FALSE(retry_after_seconds(-1e-300));
  CHECK_FALSE(retry_after_seconds(-HUGE_VAL));
  CHECK_FALSE(retry_after_seconds(std::numeric_limits<double>::quiet_NaN()));
}
