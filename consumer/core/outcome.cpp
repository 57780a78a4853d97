// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include <onay/outcome.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>

namespace onay {

std::string_view to_string(error_class cls) noexcept {
  switch (cls) {
    case error_class::none:
      return "none";
    case error_class::transient:
      return "transient";
    case error_class::overload:
      return "overload";
    case error_class::rolled_back:
      return "rolled_back";
    case error_class::permanent:
      return "permanent";
    case error_class::unauthorized:
      return "unauthorized";
    case error_class::uncertain:
      return "uncertain";
  }
  return "?";
}

std::string_view to_string(reason why) noexcept {
  switch (why) {
    case reason::none:
      return "none";
    case reason::attempts_exhausted:
      return "attempts_exhausted";
    case reason::too_old:
      return "too_old";
    case reason::would_miss_deadline:
      return "would_miss_deadline";
    case reason::rejected:
      return "rejected";
    case reason::unauthorized:
      return "unauthorized";
    case reason::outcome_unknown:
      return "outcome_unknown";
    case reason::malformed:
      return "malformed";
    case reason::too_large:
      return "too_large";
    case reason::missing_key:
      return "missing_key";
    case reason::key_too_long:
      return "key_too_long";
    case reason::key_conflict:
      return "key_conflict";
    case reason::unsupported_version:
      return "unsupported_version";
  }
  return "?";
}

std::string_view to_string(final_state state) noexcept {
  switch (state) {
    case final_state::pending:
      return "pending";
    case final_state::condemned:
      return "condemned";
    case final_state::accepted:
      return "accepted";
    case final_state::dead_lettered:
      return "dead_lettered";
    case final_state::unknown:
      return "unknown";
  }
  return "?";
}

namespace {

using utc_seconds = std::chrono::sys_seconds;

// Reads an HTTP date from the left. Every step does nothing once one has failed, so the formats below read like their
// grammar. No strptime or get_time: they follow the locale, and mktime the time zone.
class date_reader {
 public:
  explicit date_reader(std::string_view text) : left_(text) {}

  date_reader& text(std::string_view expected) {
    if (left_.starts_with(expected)) {
      left_.remove_prefix(expected.size());
    } else {
      ok_ = false;
    }
    return *this;
  }

  // Exactly `digits` digits. `blank_padded`: the first one may be a blank.
  date_reader& number(std::size_t digits, int& value, bool blank_padded = false) {
    value = 0;
    if (left_.size() < digits) {
      ok_ = false;
      return *this;
    }
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = left_[i];
      if (blank_padded && i == 0 && c == ' ') {
        continue;
      }
      ok_ = ok_ && c >= '0' && c <= '9';
      value = value * 10 + (c - '0');
    }
    left_.remove_prefix(digits);
    return *this;
  }

  // One of the names; `value` counts from 1.
  template <std::size_t N>
  date_reader& name(const std::array<std::string_view, N>& names, int& value) {
    for (std::size_t i = 0; i < N; ++i) {
      if (left_.starts_with(names[i])) {
        left_.remove_prefix(names[i].size());
        value = static_cast<int>(i) + 1;
        return *this;
      }
    }
    ok_ = false;
    return *this;
  }

  [[nodiscard]] bool finished() const { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> days = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::array<std::string_view, 7> long_days = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                       "Friday", "Saturday", "Sunday"};

struct date_fields {
  int day_of_week = 0;  // read, not compared with the date: a wrong one doesn't make the instant unclear
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;

  [[nodiscard]] std::optional<utc_seconds> instant() const {
    using namespace std::chrono;  // NOLINT(google-build-using-namespace): of one function
    const year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                              std::chrono::day(static_cast<unsigned>(day)));
    // 60: a leap second, which is the next minute's first.
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) {
      return std::nullopt;
    }
    return sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
  }
};

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<utc_seconds> imf_fixdate(std::string_view text) {
  date_fields f;
  date_reader in(text);
  in.name(days, f.day_of_week).text(", ").number(2, f.day).text(" ").name(months, f.month).text(" ").number(4, f.year);
  in.text(" ").number(2, f.hour).text(":").number(2, f.minute).text(":").number(2, f.second).text(" GMT");
  return in.finished() ? f.instant() : std::nullopt;
}

// "Sunday, 06-Nov-94 08:49:37 GMT"
std::optional<utc_seconds> rfc_850_date(std::string_view text, utc_seconds now) {
  date_fields f;
  date_reader in(text);
  in.name(long_days, f.day_of_week).text(", ").number(2, f.day).text("-").name(months, f.month).text("-");
  in.number(2, f.year).text(" ").number(2, f.hour).text(":").number(2, f.minute).text(":").number(2, f.second);
  in.text(" GMT");
  if (!in.finished()) {
    return std::nullopt;
  }
  // RFC 9110, 5.6.7: a date that seems more than 50 years ahead is the latest past one with the same two digits. By
  // fields and not by instants, since 29 February isn't a date in every candidate year.
  const auto midnight = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day today(midnight);
  const std::chrono::hh_mm_ss time(now - midnight);
  const int year_now = static_cast<int>(today.year());
  const std::array<long, 6> latest = {year_now + 50,
                                      static_cast<long>(unsigned{today.month()}),
                                      static_cast<long>(unsigned{today.day()}),
                                      time.hours().count(),
                                      time.minutes().count(),
                                      time.seconds().count()};
  f.year += year_now - year_now % 100 + 100;
  while (std::array<long, 6>{f.year, f.month, f.day, f.hour, f.minute, f.second} > latest) {
    f.year -= 100;
  }
  return f.instant();
}

// "Sun Nov  6 08:49:37 1994"
std::optional<utc_seconds> asctime_date(std::string_view text) {
  date_fields f;
  date_reader in(text);
  in.name(days, f.day_of_week).text(" ").name(months, f.month).text(" ").number(2, f.day, true).text(" ");
  in.number(2, f.hour).text(":").number(2, f.minute).text(":").number(2, f.second).text(" ").number(4, f.year);
  return in.finished() ? f.instant() : std::nullopt;
}

std::optional<duration> delay_seconds(std::string_view digits) {
  constexpr auto seconds_max = duration::max().count() / 1'000'000;
  duration::rep seconds = 0;
  bool too_large = false;
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    too_large = too_large || seconds > (seconds_max - (c - '0')) / 10;
    seconds = too_large ? seconds_max : seconds * 10 + (c - '0');
  }
  return too_large ? duration::max() : duration(std::chrono::seconds(seconds));
}

}  // namespace

std::optional<duration> parse_retry_after(std::string_view text, std::chrono::system_clock::time_point now) {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) {
    return std::nullopt;
  }
  text = text.substr(first, text.find_last_not_of(blanks) - first + 1);
  if (const auto delay = delay_seconds(text)) {
    return delay;
  }
  // "GMT" and UTC are the same here. Days are counted by the calendar, so the process's time zone has no part in it.
  auto when = imf_fixdate(text);
  if (!when) {
    when = rfc_850_date(text, std::chrono::floor<std::chrono::seconds>(now));
  }
  if (!when) {
    when = asctime_date(text);
  }
  if (!when) {
    return std::nullopt;
  }
  // In microseconds throughout: the system clock's nanoseconds end in the year 2262, a header's year in 9999.
  const duration ahead = when->time_since_epoch() - std::chrono::floor<duration>(now.time_since_epoch());
  return std::max(ahead, duration::zero());
}

std::optional<duration> retry_after_seconds(double seconds) {
  if (std::isnan(seconds) || seconds < 0) {
    return std::nullopt;
  }
  const double microseconds = std::round(seconds * 1e6);
  // 2^63, the first value that a duration can't hold.
  if (microseconds >= static_cast<double>(std::numeric_limits<duration::rep>::max())) {
    return duration::max();
  }
  return duration(static_cast<duration::rep>(microseconds));
}

}  // namespace onay
