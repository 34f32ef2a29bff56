// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/native/tcp_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace bx::native {

using fabric::StreamState;

TcpStream::TcpStream(NativeLoop& loop, NativeReactor& reactor, int fd, StreamState state)
    : loop_(loop), reactor_(reactor), fd_(fd), state_(state) {
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (!loop_.watch(fd_, *this)) drop(true);
}

TcpStream::~TcpStream() {
  if (fd_ >= 0) drop(false);
}

// Closing a socket with unread bytes would make the kernel abort the connection, and what was written last
// could be lost on its way; so those bytes are read first.
void TcpStream::drop(bool abortive) noexcept {
  loop_.forget(fd_, *this);
  if (abortive) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    state_ = StreamState::reset;
  } else {
    ::shutdown(fd_, SHUT_WR);
    std::array<std::byte, 4096> unread;
    for (int rounds = 0; rounds < 256; ++rounds) {
      if (::recv(fd_, unread.data(), unread.size(), MSG_DONTWAIT) <= 0) break;
    }
  }
  ::close(fd_);
  fd_ = -1;
}

std::size_t TcpStream::write(std::span<const std::byte> bytes) noexcept {
  if (state_ != StreamState::open && state_ != StreamState::peer_closed) return 0;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      break;  // full; or broken, which the loop tells as an event
    }
  }
  return done;
}

std::size_t TcpStream::read(std::span<std::byte> out) noexcept {
  if (state_ != StreamState::open) return 0;
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::recv(fd_, out.data() + done, out.size() - done, MSG_DONTWAIT);
    if (got > 0) {
      done += static_cast<std::size_t>(got);
    } else if (got == 0) {
      state_ = StreamState::peer_closed;
      break;
    } else if (errno != EINTR) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) drop(true);
      break;
    }
  }
  return done;
}

void TcpStream::close_write() noexcept {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
}

void TcpStream::reset() noexcept {
  if (fd_ >= 0) drop(true);
}

bool TcpStream::finished_connecting() noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

void TcpStream::on_ready(std::uint32_t epoll_events) noexcept {
  if (state_ == StreamState::connecting) {
    if ((epoll_events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    if (finished_connecting()) {
      state_ = StreamState::open;
    } else {
      drop(true);
    }
  } else if ((epoll_events & EPOLLERR) != 0) {
    drop(true);
  } else if ((epoll_events & EPOLLRDHUP) != 0) {
    // If nothing lies before the end, this is the end: a reader that has read everything need not ask again.
    std::byte one{};
    if (::recv(fd_, &one, 1, MSG_PEEK | MSG_DONTWAIT) == 0) state_ = StreamState::peer_closed;
  }
  reactor_.waker().wake();
  if (events_ != nullptr) events_->on_stream(*this);
}

}  // namespace bx::native
