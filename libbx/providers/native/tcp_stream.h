// SPDX-License-Identifier: BSD-3-Clause
// fabric::Stream over kernel TCP: one non-blocking socket. What does not fit the socket's buffer stays with
// the caller, who is told when there is room again.
#pragma once

#include "libbx/fabric/stream.h"
#include "libbx/providers/native/native_loop.h"
#include "libbx/providers/native/native_reactor.h"

namespace bx::native {

class TcpStream final : public fabric::Stream, private FdListener {
 public:
  // Takes the socket over. A stream that connects is open once the socket says so.
  TcpStream(NativeLoop& loop, NativeReactor& reactor, int fd, fabric::StreamState state);
  ~TcpStream() override;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  [[nodiscard]] fabric::StreamState state() const noexcept override { return state_; }
  std::size_t write(std::span<const std::byte> bytes) noexcept override;
  std::size_t read(std::span<std::byte> out) noexcept override;
  void close_write() noexcept override;
  void reset() noexcept override;
  void set_events(fabric::StreamEvents* events) noexcept override { events_ = events; }

 private:
  void on_ready(std::uint32_t epoll_events) noexcept override;
  void drop(bool abortive) noexcept;
  [[nodiscard]] bool finished_connecting() noexcept;

  NativeLoop& loop_;
  NativeReactor& reactor_;
  int fd_;
  fabric::StreamState state_;
  fabric::StreamEvents* events_ = nullptr;
};

}  // namespace bx::native
