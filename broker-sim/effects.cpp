// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "effects.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>

namespace onay::sim {
namespace {

// id, at, age, attempt and kind. Written and read by the same program on the same machine: no byte order to mind.
constexpr std::size_t record_size = 20;
constexpr std::uint32_t attempt_max = 0xffffffU;

void pack(const event& e, std::array<char, record_size>& out) {
  const std::uint32_t last = std::min(e.attempt, attempt_max) << 8U | static_cast<std::uint32_t>(e.kind);
  std::memcpy(out.data(), &e.id, 8);
  std::memcpy(out.data() + 8, &e.at, 4);
  std::memcpy(out.data() + 12, &e.age_ms, 4);
  std::memcpy(out.data() + 16, &last, 4);
}

event unpack(const char* bytes) {
  event e;
  std::uint32_t last = 0;
  std::memcpy(&e.id, bytes, 8);
  std::memcpy(&e.at, bytes + 8, 4);
  std::memcpy(&e.age_ms, bytes + 12, 4);
  std::memcpy(&last, bytes + 16, 4);
  e.attempt = last >> 8U;
  e.kind = static_cast<event_kind>(last & 0xffU);
  return e;
}

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw std::system_error(errno, std::generic_category(), file.string());
}

}  // namespace

event_writer::event_writer(const std::filesystem::path& file, time_point beginning)
    : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)), beginning_(beginning) {
  if (fd_ < 0) fail(file);
}

event_writer::~event_writer() { ::close(fd_); }

void event_writer::write(event_kind kind, std::uint64_t id, std::uint32_t attempt, duration age) const {
  event e;
  e.id = id;
  e.at = to_ticks(boot_clock::now() - beginning_);
  e.age_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(age.count() / 1000, 0, 0xffffffff));
  e.attempt = attempt;
  e.kind = kind;
  std::array<char, record_size> bytes;
  pack(e, bytes);
  ssize_t written = 0;
  do {
    written = ::write(fd_, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(written < 0 ? errno : ENOSPC, std::generic_category(), "writing an effect");
  }
}

struct event_reader::source {
  std::filesystem::path file;
  std::vector<char> bytes;
  std::size_t position = 0;  // in `bytes`
  std::uint64_t offset = 0;  // in the file, of the end of `bytes`
  bool ended = false;

  // Makes sure that a whole record lies at `position`; false at the end of the file.
  bool fill() {
    constexpr std::size_t records_at_once = 512;
    if (position + record_size <= bytes.size()) return true;
    if (ended) return false;
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      ended = true;
      if (errno != ENOENT) fail(file);
      return false;
    }
    offset -= bytes.size() - position;
    bytes.resize(records_at_once * record_size);
    position = 0;
    ssize_t got = 0;
    do {
      got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    const int error = errno;
    ::close(fd);
    if (got < 0) {
      errno = error;
      fail(file);
    }
    bytes.resize(static_cast<std::size_t>(got));
    offset += bytes.size();
    if (bytes.size() >= record_size) return true;
    ended = true;
    return false;
  }
};

event_reader::event_reader(std::vector<std::filesystem::path> files) {
  for (auto& file : files) {
    sources_.push_back(std::make_unique<source>());
    sources_.back()->file = std::move(file);
  }
  for (std::uint32_t life = 0; life < sources_.size(); ++life) push(life);
}

event_reader::~event_reader() = default;

void event_reader::push(std::uint32_t life) {
  auto& from = *sources_[life];
  if (!from.fill()) {
    torn_ += from.bytes.size() - from.position;
    std::vector<char>().swap(from.bytes);
    from.position = 0;
    return;
  }
  const std::uint64_t at = unpack(from.bytes.data() + from.position).at;
  heap_.push_back(at << 32U | life);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

bool event_reader::next(event& out) {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  const auto life = static_cast<std::uint32_t>(heap_.back());
  heap_.pop_back();
  auto& from = *sources_[life];
  out = unpack(from.bytes.data() + from.position);
  out.life = static_cast<std::uint16_t>(life);
  from.position += record_size;
  push(life);
  return true;
}

}  // namespace onay::sim
