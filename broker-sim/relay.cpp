// SPDX-License-Identifier: Apache-2.0
// Copyright The onay authors
#include "relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <list>
#include <system_error>
#include <vector>

namespace onay::sim {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

// Closing with a linger of zero sends RST and forgets what was not yet sent.
void reset(int fd) {
  const linger hard{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  ::close(fd);
}

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS; }

// Bytes on their way in one direction.
struct pipe_end {
  std::vector<char> bytes = std::vector<char>(std::size_t{64} << 10U);
  std::size_t begin = 0, end = 0;
  bool eof = false;   // the source said that no more comes
  bool shut = false;  // and the target was told

  [[nodiscard]] bool empty() const { return begin == end; }

  // Both return false when the connection is broken.
  bool read_from(int fd) {
    if (!empty() || eof) return true;
    begin = end = 0;
    const auto got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got < 0) return is_passing(errno);
    eof = got == 0;
    end = static_cast<std::size_t>(got);
    return true;
  }
  bool write_to(int fd) {
    if (!empty()) {
      const auto put = ::send(fd, bytes.data() + begin, end - begin, MSG_NOSIGNAL);
      if (put < 0) return is_passing(errno);
      begin += static_cast<std::size_t>(put);
    }
    if (empty() && eof && !shut) {
      shut = true;
      ::shutdown(fd, SHUT_WR);
    }
    return true;
  }
};

}  // namespace

struct relay::connection {
  int client = -1, target = -1;
  bool connected = false;
  pipe_end out, in;  // to and from the target
};

relay::relay(std::uint16_t target, std::uint16_t port) : target_(target) {
  listener_ = make_socket();
  if (listener_ < 0) fail("relay: socket");
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto address = loopback(port);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int error = errno;
    ::close(listener_);
    errno = error;
    fail("relay: listen");
  }
  port_ = ntohs(address.sin_port);
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) {
    ::close(listener_);
    fail("relay: eventfd");
  }
  thread_ = std::thread([this] { run(); });
}

relay::~relay() {
  stop_ = true;
  wake();
  thread_.join();
  ::close(listener_);
  ::close(wake_);
}

void relay::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

void relay::cut() {
  std::unique_lock lock(mutex_);
  const auto mine = ++cuts_wanted_;
  wake();
  cut_done_.wait(lock, [&] { return cuts_made_ >= mine; });
}

void relay::stall(way w, bool on) {
  stalled_[static_cast<std::size_t>(w)] = on;
  wake();
}

void relay::refuse(bool on) { refusing_ = on; }

void relay::run() {
  std::list<connection> all;
  const auto close_both = [&](std::list<connection>::iterator c) {
    reset(c->client);
    reset(c->target);
    --open_;
    return all.erase(c);
  };
  const auto accept_one = [&] {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
    const int target = make_socket();
    const auto address = loopback(target_);
    if (refusing_ || target < 0 ||
        (::connect(target, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 && !is_passing(errno))) {
      reset(client);
      if (target >= 0) reset(target);
      return;
    }
    const int on = 1;  // a relay that waits for more bytes would measure itself
    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(target, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    all.emplace_back();
    all.back().client = client;
    all.back().target = target;
    ++accepted_;
    ++open_;
  };

  std::vector<pollfd> polled;
  while (!stop_) {
    bool hold_out = stalled_[0], hold_in = stalled_[1];
    polled.assign({{wake_, POLLIN, 0}, {listener_, POLLIN, 0}});
    const auto wish = [](bool read, bool write) {
      return static_cast<short>((read ? POLLIN : 0) | (write ? POLLOUT : 0));
    };
    for (auto& c : all) {
      const bool read_out = !hold_out && c.out.empty() && !c.out.eof;
      const bool read_in = !hold_in && c.in.empty() && !c.in.eof;
      polled.push_back({c.client, wish(c.connected && read_out, !hold_in && !c.in.empty()), 0});
      polled.push_back({c.target, wish(read_in, !c.connected || (!hold_out && !c.out.empty())), 0});
    }
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    // Stalled meanwhile: what woke this up came after that, and must wait.
    hold_out = stalled_[0];
    hold_in = stalled_[1];

    if ((polled[0].revents & POLLIN) != 0) {
      std::uint64_t drained = 0;
      [[maybe_unused]] const auto got = ::read(wake_, &drained, sizeof drained);
    }
    {
      const std::lock_guard lock(mutex_);
      if (cuts_made_ < cuts_wanted_) {
        for (auto c = all.begin(); c != all.end();) c = close_both(c);
        cuts_made_ = cuts_wanted_;
        cut_done_.notify_all();
      }
    }
    std::size_t at = 2;
    for (auto c = all.begin(); c != all.end(); at += 2) {
      const auto client = polled[at].revents, target = polled[at + 1].revents;
      if ((target & POLLOUT) != 0) c->connected = true;
      bool sound = ((client | target) & (POLLERR | POLLNVAL)) == 0;
      if (sound && c->connected) {
        const bool client_ready = (client & (POLLIN | POLLHUP)) != 0, target_ready = (target & (POLLIN | POLLHUP)) != 0;
        sound = (hold_out || ((!client_ready || c->out.read_from(c->client)) && c->out.write_to(c->target))) &&
                (hold_in || ((!target_ready || c->in.read_from(c->target)) && c->in.write_to(c->client)));
      }
      // Both said good-bye and were heard: an ordinary end.
      const bool ended = c->out.shut && c->in.shut;
      c = sound && !ended ? std::next(c) : close_both(c);
    }
    if ((polled[1].revents & POLLIN) != 0) accept_one();
  }
  for (auto c = all.begin(); c != all.end();) c = close_both(c);
  const std::lock_guard lock(mutex_);
  cuts_made_ = ~std::uint64_t{0};
  cut_done_.notify_all();
}

}  // namespace onay::sim
