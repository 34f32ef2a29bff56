// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/native/tcp_streams.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "libbx/providers/native/tcp_stream.h"

namespace bx::native {
namespace {

using fabric::StreamState;

tl::unexpected<Error> socket_error(const char* detail, int error) {
  ErrorCode code = ErrorCode::unreachable;
  if (error == EADDRINUSE || error == EMFILE || error == ENFILE || error == ENOMEM ||
      error == EADDRNOTAVAIL) {
    code = error == EADDRNOTAVAIL ? ErrorCode::invalid_argument : ErrorCode::exhausted;
  } else if (error == EACCES) {
    code = ErrorCode::invalid_argument;
  }
  return fail(code, ErrorScope::operation, detail, error);
}

class TcpListener final : public fabric::Listener, private FdListener {
 public:
  TcpListener(NativeLoop& loop, NativeReactor& reactor, fabric::StreamAcceptor& acceptor, int fd)
      : loop_(loop), reactor_(reactor), acceptor_(acceptor), fd_(fd), watched_(loop.watch(fd, *this)) {}
  ~TcpListener() override {
    if (destroyed_ != nullptr) *destroyed_ = true;
    loop_.forget(fd_, *this);
    ::close(fd_);
  }
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  [[nodiscard]] bool watched() const noexcept { return watched_; }

 private:
  // The acceptor may destroy this listener.
  void on_ready(std::uint32_t /*epoll_events*/) noexcept override {
    bool gone = false;
    destroyed_ = &gone;
    for (;;) {
      const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (fd < 0) break;  // nothing left; or no file descriptor, then the next arrival tries again
      reactor_.waker().wake();
      acceptor_.on_accept(std::make_unique<TcpStream>(loop_, reactor_, fd, StreamState::open));
      if (gone) return;
    }
    destroyed_ = nullptr;
  }

  NativeLoop& loop_;
  NativeReactor& reactor_;
  fabric::StreamAcceptor& acceptor_;
  int fd_;
  bool watched_;
  bool* destroyed_ = nullptr;
};

int open_socket(int family) noexcept {
  return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

}  // namespace

const HostEntry* HostTable::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(entries_, name, &HostEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<SocketAddress> HostTable::address_of(std::string_view name, std::uint16_t port) const {
  const HostEntry* entry = find(name);
  return SocketAddress::parse(entry != nullptr ? entry->address : std::string(name), port);
}

Result<std::unique_ptr<fabric::Listener>> TcpStreams::listen(std::uint16_t port,
                                                             fabric::StreamAcceptor& acceptor) {
  const auto address = SocketAddress::parse(address_, port);
  if (!address) return fail(ErrorCode::invalid_argument, ErrorScope::operation, "the host's address");
  const int fd = open_socket(address->family());
  if (fd < 0) return socket_error("no socket to listen with", errno);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, address->get(), address->size()) != 0 || ::listen(fd, kBacklog) != 0) {
    const int error = errno;
    ::close(fd);
    return socket_error("cannot listen at that port of the host's address", error);
  }
  auto listener = std::make_unique<TcpListener>(loop_, reactor_, acceptor, fd);
  if (!listener->watched()) return socket_error("cannot watch the listening socket", ENOMEM);
  return listener;
}

Result<std::unique_ptr<fabric::Stream>> TcpStreams::connect(std::string_view host, std::uint16_t port,
                                                            fabric::StreamEvents& events) {
  const auto there = hosts_.address_of(host, port);
  if (!there) {
    return fail(ErrorCode::unreachable, ErrorScope::operation, "no host of that name, and no IP address");
  }
  const int fd = open_socket(there->family());
  if (fd < 0) return socket_error("no socket to connect with", errno);
  const auto here = SocketAddress::parse(address_);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  const bool bound = here && here->family() == there->family() && ::bind(fd, here->get(), here->size()) == 0;
  const bool begun = bound && (::connect(fd, there->get(), there->size()) == 0 || errno == EINPROGRESS);
  if (!begun) {
    const int error = errno;
    ::close(fd);
    return socket_error("cannot connect from this host's address to that one", error);
  }
  auto stream = std::make_unique<TcpStream>(loop_, reactor_, fd, StreamState::connecting);
  stream->set_events(&events);
  return stream;
}

}  // namespace bx::native
