// SPDX-License-Identifier: BSD-3-Clause
// The byte stream behind a peer: first the handshake (wire/hello.h), then a sign of life, for its end means
// that the other worker is gone. A state machine over the stream's events; what it learns it tells its
// listener.
//
//   opener:   connecting -> hello sent -> (Hello) -> ready sent = established
//   acceptor: waiting    -> (Hello) -> hello sent -> (Ready)    = established
#pragma once

#include <cstdint>
#include <memory>

#include "libbx/base/result.h"
#include "libbx/fabric/reactor.h"
#include "libbx/fabric/stream.h"
#include "libbx/wire/hello.h"

namespace bx::engine {

class Connection;

class ConnectionListener {
 public:
  // Opener: the acceptor's side of the handshake is here. Acceptor: somebody wants in. An error closes the
  // connection; on the acceptor's side `reject` is what the opener is told.
  virtual Result<> on_hello(Connection& connection, const wire::Hello& hello, wire::Reject& reject) = 0;
  virtual void on_established(Connection& connection) = 0;
  // The handshake failed, the deadline passed, or the other side went away. Nothing more comes after this.
  virtual void on_lost(Connection& connection, const Error& error) = 0;

 protected:
  ~ConnectionListener() = default;
};

enum class Role : std::uint8_t { opener, acceptor };

class Connection final : public fabric::StreamEvents, private fabric::Timer {
 public:
  Connection(ConnectionListener& listener, fabric::Reactor& reactor, Role role, Instant deadline);

  // The stream it speaks over; given once.
  void attach(std::unique_ptr<fabric::Stream> stream);
  // Acceptor: looks at what the stream may hold already.
  void start() { advance(); }
  // Opener: what to say first, as soon as the stream is open. Acceptor: the answer, from within on_hello.
  void set_hello(const wire::Hello& hello) { hello_ = hello; }
  void close() noexcept;  // without telling the listener

  [[nodiscard]] Role role() const noexcept { return role_; }
  // The other side closed it, rather than that it broke.
  [[nodiscard]] bool closed_by_peer() const noexcept {
    return stream_ != nullptr && stream_->state() == fabric::StreamState::peer_closed;
  }
  [[nodiscard]] bool lost() const noexcept { return state_ == State::lost; }
  // The peer this connection belongs to; kNoPeer until the listener says.
  static constexpr std::uint32_t kNoPeer = 0xffffffff;
  std::uint32_t peer = kNoPeer;
  std::uint32_t service = 0;  // acceptor: index of the service it came for

  void on_stream(fabric::Stream& stream) noexcept override;

 private:
  enum class State : std::uint8_t { waiting, hello_sent, established, lost };
  void on_timer(Instant now) noexcept override;
  void advance();
  void read_frames();
  void handle(const wire::HandshakeFrame& frame);
  void handle_hello(const wire::Hello& hello);
  void send(const wire::HandshakeFrame& frame);
  void flush();
  void lose(const Error& error);

  ConnectionListener& listener_;
  fabric::Reactor& reactor_;
  Role role_;
  State state_ = State::waiting;
  std::unique_ptr<fabric::Stream> stream_;
  wire::Hello hello_;
  wire::FrameParser parser_;
  std::vector<std::byte> unsent_;
};

}  // namespace bx::engine
