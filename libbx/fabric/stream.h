// SPDX-License-Identifier: BSD-3-Clause
// Reliable byte streams between hosts: kernel TCP on real hosts, a model of it in virtual time. Connection
// handshakes, and later recovery and the TCP lane, ride on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "libbx/base/result.h"

namespace bx::fabric {

enum class StreamState : std::uint8_t {
  connecting,
  open,
  peer_closed,  // the peer ended its direction; what it sent before can still be read, and we may still write
  reset,        // refused, aborted, or the peer's host is gone; unread bytes are lost
};

class Stream;

// Told, from the reactor and never from inside a call of the user's, that a stream became readable or
// writable or changed its state. Read and write until short.
class StreamEvents {
 public:
  virtual void on_stream(Stream& stream) noexcept = 0;

 protected:
  ~StreamEvents() = default;
};

class Stream {
 public:
  virtual ~Stream() = default;  // closes both directions; the peer sees the end after what was written
  [[nodiscard]] virtual StreamState state() const noexcept = 0;
  // Takes a prefix and returns its length; short when the buffer is full or the stream is not open.
  virtual std::size_t write(std::span<const std::byte> bytes) noexcept = 0;
  // Moves up to out.size() received bytes; 0 with state() == peer_closed is the end.
  virtual std::size_t read(std::span<std::byte> out) noexcept = 0;
  virtual void close_write() noexcept = 0;  // half-close, after what was written
  virtual void reset() noexcept = 0;        // abort; the peer sees reset
  virtual void set_events(StreamEvents* events) noexcept = 0;
};

class StreamAcceptor {
 public:
  // Owns the stream from here on; called from the reactor.
  virtual void on_accept(std::unique_ptr<Stream> stream) noexcept = 0;

 protected:
  ~StreamAcceptor() = default;
};

class Listener {
 public:
  virtual ~Listener() = default;  // stops listening; accepted streams live on
};

class StreamNetwork {
 public:
  virtual ~StreamNetwork() = default;
  // Errors: exhausted (the port is taken), invalid_argument.
  virtual Result<std::unique_ptr<Listener>> listen(std::uint16_t port, StreamAcceptor& acceptor) = 0;
  // Starts a connection; the stream goes from connecting to open or to reset. Errors: unreachable (no such
  // host).
  virtual Result<std::unique_ptr<Stream>> connect(std::string_view host, std::uint16_t port,
                                                  StreamEvents& events) = 0;
};

}  // namespace bx::fabric
