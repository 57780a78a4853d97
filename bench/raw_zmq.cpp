// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
//
// The floor: what libzmq alone does between two processes over tcp on the loopback, one message a frame, no
// acknowledgement, nothing kept. Prints one JSON object.
//
//   raw_zmq push-pull MESSAGES BYTES     messages a second, first send to last receive
//   raw_zmq req-rep   MESSAGES BYTES     round trips, one at a time: p50 and p99 in ms
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <zmq.hpp>

namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

std::string bind_somewhere(zmq::socket_t& s) {
  s.bind("tcp://127.0.0.1:*");
  return s.get(zmq::sockopt::last_endpoint);
}

// The child connects where the parent, through the pipe, says that it listens.
std::string read_address(int fd) {
  char text[256] = {};
  const auto n = read(fd, text, sizeof text - 1);
  return n > 0 ? std::string(text, std::size_t(n)) : std::string();
}

void push(int fd, long messages, std::size_t bytes) {
  zmq::context_t context;
  zmq::socket_t s(context, zmq::socket_type::push);
  s.connect(read_address(fd));
  const std::string payload(bytes, 'x');
  for (long i = 0; i < messages; ++i) {
    s.send(zmq::buffer(payload), zmq::send_flags::none);
  }
}

void pull(zmq::socket_t& s, long messages) {
  zmq::message_t m;
  (void)s.recv(m);
  const auto start = clock_type::now();
  for (long i = 1; i < messages; ++i) {
    (void)s.recv(m);
  }
  std::printf("{\"per_second\": %.0f}\n", double(messages - 1) / seconds_since(start));
}

void reply(int fd, long messages) {
  zmq::context_t context;
  zmq::socket_t s(context, zmq::socket_type::rep);
  s.connect(read_address(fd));
  zmq::message_t m;
  for (long i = 0; i < messages; ++i) {
    (void)s.recv(m);
    s.send(m, zmq::send_flags::none);
  }
}

void request(zmq::socket_t& s, long messages, std::size_t bytes) {
  const std::string payload(bytes, 'x');
  std::vector<double> ms;
  zmq::message_t m;
  for (long i = 0; i < messages; ++i) {
    const auto start = clock_type::now();
    s.send(zmq::buffer(payload), zmq::send_flags::none);
    (void)s.recv(m);
    ms.push_back(seconds_since(start) * 1e3);
  }
  ms.erase(ms.begin(), ms.begin() + std::min<long>(long(ms.size()) / 10, 100));  // warming up
  std::sort(ms.begin(), ms.end());
  std::printf("{\"p50_ms\": %.4f, \"p99_ms\": %.4f}\n", ms[ms.size() / 2], ms[ms.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const long messages = argc > 2 ? std::atol(argv[2]) : 0;
  const auto bytes = std::size_t(argc > 3 ? std::atol(argv[3]) : 256);
  if ((mode != "push-pull" && mode != "req-rep") || messages < 2) {
    std::fprintf(stderr, "usage: raw_zmq push-pull|req-rep MESSAGES(2..) [BYTES]\n");
    return 2;
  }
  int fds[2];
  if (pipe(fds) != 0) {
    std::perror("pipe");
    return 1;
  }
  const bool one_way = mode == "push-pull";
  const auto child = fork();
  if (child == 0) {
    one_way ? push(fds[0], messages, bytes) : reply(fds[0], messages);
    std::_Exit(0);
  }
  zmq::context_t context;
  zmq::socket_t s(context, one_way ? zmq::socket_type::pull : zmq::socket_type::req);
  const auto address = bind_somewhere(s);
  if (write(fds[1], address.data(), address.size()) < 0) {
    std::perror("write");
    return 1;
  }
  one_way ? pull(s, messages) : request(s, messages, bytes);
  waitpid(child, nullptr, 0);
  return 0;
}
