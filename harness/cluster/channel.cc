// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/base/stopwatch.h"
#include "libbx/providers/native/socket_address.h"

namespace bx::harness {
namespace {

constexpr int kBacklog = 256;
constexpr int kUnansweredMilliseconds = 20'000;  // until a peer whose machine has gone is given up

void set_up(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMilliseconds, sizeof kUnansweredMilliseconds);
}

std::string failed(std::string_view what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

}  // namespace

Channel::Channel(int fd, std::size_t bytes_max) : fd_(fd), reader_(bytes_max) {
  set_up(fd_);
}

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

Parsed<int> Channel::dial(const std::string& address, std::uint16_t port, int seconds) {
  const auto to = native::SocketAddress::parse(address, port);
  if (!to) return tl::unexpected(fmt::format("'{}' is no IPv4 or IPv6 address", address));
  const Stopwatch stopwatch;
  for (;;) {
    const int fd = ::socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return tl::unexpected(failed("no socket"));
    if (::connect(fd, to->get(), to->size()) == 0) return fd;
    int error = errno;
    if (error == EINPROGRESS) {
      pollfd polled{fd, POLLOUT, 0};
      const int left = static_cast<int>((seconds - stopwatch.seconds()) * 1000);
      error = ETIMEDOUT;
      socklen_t length = sizeof error;
      if (::poll(&polled, 1, std::max(0, left)) == 1) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
      if (error == 0) return fd;
    }
    ::close(fd);
    errno = error;
    if (error != ECONNREFUSED || stopwatch.seconds() >= seconds) {
      return tl::unexpected(failed(fmt::format("no connection to {} port {}", address, port)));
    }
    ::poll(nullptr, 0, 50);
  }
}

void Channel::send(const Json& message) {
  if (!is_open()) return;
  outgoing_ += frame_of(message);
  flush();
}

void Channel::flush() {
  std::size_t sent = 0;
  while (is_open() && sent < outgoing_.size()) {
    const ssize_t written = ::send(fd_, outgoing_.data() + sent, outgoing_.size() - sent, MSG_NOSIGNAL);
    if (written > 0) {
      sent += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      // What has arrived before the connection broke is still to be read: reading notices the end.
      if (errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) close(failed("the connection broke"));
      break;
    }
  }
  outgoing_.erase(0, sent);
}

void Channel::drain(int milliseconds) {
  const Stopwatch stopwatch;
  for (flush(); is_open() && wants_write() && stopwatch.seconds() * 1000 < milliseconds; flush()) {
    pollfd polled{fd_, POLLOUT, 0};
    ::poll(&polled, 1, 10);
    if ((polled.revents & (POLLERR | POLLHUP)) != 0) break;
  }
}

std::optional<Json> Channel::receive() {
  if (!is_open()) return std::nullopt;
  Parsed<std::optional<Json>> message = reader_.next();
  if (message && !*message) {
    read_socket();
    if (is_open()) message = reader_.next();
  }
  if (!message) {
    close("it sent " + message.error());
    return std::nullopt;
  }
  if (!*message && ended_) close("the connection was closed");
  return std::move(*message);
}

void Channel::read_socket() {
  char buffer[65536];
  const ssize_t length = ::recv(fd_, buffer, sizeof buffer, 0);
  if (length > 0) return reader_.append({buffer, static_cast<std::size_t>(length)});
  if (length == 0) {
    ended_ = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    close(failed("the connection broke"));
  }
}

void Channel::close(std::string why) {
  if (!is_open()) return;
  ::close(std::exchange(fd_, -1));
  why_ = std::move(why);
  outgoing_.clear();
}

Parsed<ControlListener> ControlListener::open(const std::string& address, std::uint16_t port) {
  const auto at = native::SocketAddress::parse(address, port);
  if (!at) return tl::unexpected(fmt::format("'{}' is no IPv4 or IPv6 address", address));
  const int fd = ::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return tl::unexpected(failed("no socket"));
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::bind(fd, at->get(), at->size()) != 0 || ::listen(fd, kBacklog) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    std::string why = failed(fmt::format("cannot listen at {}", address));
    ::close(fd);
    return tl::unexpected(std::move(why));
  }
  const std::uint16_t taken = bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                          : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  return ControlListener(fd, ntohs(taken));
}

ControlListener::~ControlListener() {
  if (fd_ >= 0) ::close(fd_);
}

ControlListener::ControlListener(ControlListener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

ControlListener& ControlListener::operator=(ControlListener&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_, other.port_);
  return *this;
}

int ControlListener::accept() const {
  return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

}  // namespace bx::harness
