// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "process.hpp"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace onay::sim {

process::process(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"broker-sim"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  // The link, not the path behind it: the program may have been replaced by a newer build meanwhile.
  const int error = ::posix_spawn(&pid_, "/proc/self/exe", nullptr, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "starting a process");
}

process::~process() {
  if (pid_ > 0 && !end_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

process::process(process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), end_(other.end_) {}

process& process::operator=(process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(end_, other.end_);
  return *this;
}

void process::signal(int number) const {
  if (pid_ > 0 && !end_) ::kill(pid_, number);
}

std::optional<process_end> process::poll() {
  if (end_ || pid_ <= 0) return end_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == pid_) {
    end_ = WIFSIGNALED(status) ? process_end{0, WTERMSIG(status)} : process_end{WEXITSTATUS(status), 0};
  }
  return end_;
}

std::optional<process_end> process::wait_for(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (!poll() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return end_;
}

void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

double peak_rss_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

void write_whole(const std::filesystem::path& file, const std::string& text) {
  const auto draft = std::filesystem::path(file).concat(".new");
  {
    std::ofstream out(draft, std::ios::binary);
    out << text;
    if (!out.flush()) throw std::system_error(errno, std::generic_category(), draft.string());
  }
  std::filesystem::rename(draft, file);
}

std::optional<std::string> await_file(const std::filesystem::path& file, process* child,
                                      std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (std::ifstream in(file, std::ios::binary); in) {
      return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    if ((child != nullptr && child->poll()) || std::chrono::steady_clock::now() >= until) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace onay::sim
