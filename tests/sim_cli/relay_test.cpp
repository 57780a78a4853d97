// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "broker-sim/relay.hpp"

#include "support/catch.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cerrno>
#include <string>

using onay::sim::relay;

namespace {

// A blocking socket that gives up after five seconds instead of hanging the test.
class tcp {
 public:
  explicit tcp(int fd) : fd_(fd) {
    const timeval patience{5, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  tcp(tcp&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ~tcp() { close(); }
  tcp(const tcp&) = delete;
  tcp& operator=(const tcp&) = delete;

  static tcp connected_to(std::uint16_t port) {
    tcp s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto a = address(port);
    REQUIRE(::connect(s.fd_, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
    return s;
  }
  static sockaddr_in address(std::uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons(port);
    return a;
  }
  void say(const std::string& text) const { REQUIRE(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) > 0); }
  // "" at the end of the stream, "reset" for a broken one.
  [[nodiscard]] std::string hear(std::size_t size) const {
    std::string text(size, ' ');
    const auto got = ::recv(fd_, text.data(), size, MSG_WAITALL);
    if (got < 0) return errno == ECONNRESET ? "reset" : "silence";
    text.resize(static_cast<std::size_t>(got));
    return text;
  }
  [[nodiscard]] bool silent_for(int ms) const {
    pollfd p{fd_, POLLIN, 0};
    return ::poll(&p, 1, ms) == 0;
  }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class listener {
 public:
  listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto a = tcp::address(0);
    socklen_t size = sizeof a;
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
    REQUIRE(::listen(fd_, 8) == 0);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &size) == 0);
    port_ = ntohs(a.sin_port);
  }
  ~listener() { ::close(fd_); }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] tcp accept() const { return tcp(::accept(fd_, nullptr, nullptr)); }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace

TEST_CASE("the relay forwards both ways") {
  const listener target;
  const relay between(target.port());
  const auto client = tcp::connected_to(between.port());
  const auto server = target.accept();
  client.say("question");
  CHECK(server.hear(8) == "question");
  server.say("answer");
  CHECK(client.hear(6) == "answer");
  CHECK(between.accepted() == 1);
  CHECK(between.open() == 1);
}

TEST_CASE("a good-bye passes the relay, and the other way stays open") {
  const listener target;
  const relay between(target.port());
  const auto client = tcp::connected_to(between.port());
  const auto server = target.accept();
  client.say("last");
  client.end_sending();
  CHECK(server.hear(4) == "last");
  CHECK(server.hear(1).empty());
  server.say("late");
  CHECK(client.hear(4) == "late");
}

TEST_CASE("large amounts pass the relay whole") {
  const listener target;
  const relay between(target.port());
  const auto client = tcp::connected_to(between.port());
  const auto server = target.accept();
  const std::string text(100'000, 'x');
  for (int n = 0; n < 10; ++n) {
    client.say(text);
    CHECK(server.hear(text.size()) == text);
  }
}

TEST_CASE("a cut resets both ends and leaves the relay working") {
  const listener target;
  relay between(target.port());
  const auto client = tcp::connected_to(between.port());
  const auto server = target.accept();
  client.say("x");
  CHECK(server.hear(1) == "x");
  between.cut();
  CHECK(between.open() == 0);
  CHECK(client.hear(1) == "reset");
  CHECK(server.hear(1) == "reset");
  const auto again = tcp::connected_to(between.port());
  const auto served = target.accept();
  again.say("y");
  CHECK(served.hear(1) == "y");
}

TEST_CASE("a stalled way holds its bytes while the other one flows") {
  const listener target;
  relay between(target.port());
  const auto client = tcp::connected_to(between.port());
  const auto server = target.accept();
  client.say("x");
  CHECK(server.hear(1) == "x");
  between.stall(relay::way::to_target, true);
  client.say("held");
  server.say("flows");
  CHECK(client.hear(5) == "flows");
  CHECK(server.silent_for(50));
  between.stall(relay::way::to_target, false);
  CHECK(server.hear(4) == "held");
}

TEST_CASE("a relay without a target refuses") {
  std::uint16_t nobody = 0;
  {
    const listener gone;
    nobody = gone.port();
  }
  relay between(nobody);
  const auto client = tcp::connected_to(between.port());
  CHECK(client.hear(1) == "reset");
}
