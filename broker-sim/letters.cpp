// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "letters.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace onay::sim {
namespace {

using json = nlohmann::ordered_json;

std::string utc(utc_time t) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(t);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(t - seconds).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), ms);
}

json to_json(const dead_letter& l) {
  json line = {{"id", to_string(l.id)},
               {"operation_key", l.record.operation_key},
               {"key_hash", hash_text(l.record.operation_key)},
               {"reason", to_string(l.why)},
               {"attempts", l.record.attempts},
               {"last_error", to_string(l.record.last_error)},
               {"last_error_text", l.record.last_error_text},
               {"origin", l.origin},
               {"payload_bytes", l.payload.size()}};
  if (l.record.first_attempt) line["first_attempt"] = utc(*l.record.first_attempt);
  if (l.record.last_attempt) line["last_attempt"] = utc(*l.record.last_attempt);
  if (l.record.deadline) line["deadline"] = utc(*l.record.deadline);
  return line;
}

}  // namespace

letter_writer::letter_writer(const std::filesystem::path& file, bool sync)
    : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)), sync_(sync) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), file.string());
}

letter_writer::~letter_writer() { ::close(fd_); }

void letter_writer::write(const delivery& d) const {
  const auto read = read_dead_letter(d.payload());
  // A letter that can't be read is kept all the same: refusing it would leave it with its sender for ever.
  const auto line = (read ? to_json(*read) : json{{"unreadable", std::string(d.payload())}})
                        .dump(-1, ' ', false, json::error_handler_t::replace) +
                    "\n";
  ssize_t written = 0;
  do {
    written = ::write(fd_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line.size()) || (sync_ && ::fdatasync(fd_) != 0)) {
    throw std::system_error(errno, std::generic_category(), "writing a dead letter");
  }
}

bool read_letter(const std::string& line, letter& out) {
  const auto j = nlohmann::json::parse(line, nullptr, false);
  if (!j.is_object() || !j.contains("id")) return false;
  out.id = j.value("id", "");
  out.operation_key = j.value("operation_key", "");
  out.key_hash = j.value("key_hash", std::uint64_t{0});
  out.why = j.value("reason", "");
  out.attempts = j.value("attempts", 0U);
  return true;
}

void for_each_letter(const std::filesystem::path& file, const std::function<void(const letter&)>& each,
                     const std::function<void()>& bad) {
  std::ifstream in(file, std::ios::binary);
  letter l;
  for (std::string line; std::getline(in, line);) {
    if (read_letter(line, l)) {
      each(l);
    } else if (bad) {
      bad();
    }
  }
}

}  // namespace onay::sim
