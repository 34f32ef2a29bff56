// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/connection.h"

#include <array>
#include <variant>

namespace bx::engine {
namespace {

Error error_of(const wire::Reject& reject) {
  const int supported = static_cast<int>(reject.supported);
  switch (reject.reason) {
    case wire::RejectReason::peers_exhausted:
      return {ErrorCode::exhausted, ErrorScope::session, supported, "the peer is at its peers.max"};
    case wire::RejectReason::memory_exhausted:
      return {ErrorCode::exhausted, ErrorScope::session, supported,
              "the peer has no memory for more receives"};
    case wire::RejectReason::version:
      return {ErrorCode::protocol, ErrorScope::session, supported, "the peer speaks another version"};
    case wire::RejectReason::incompatible:
      break;
  }
  return {ErrorCode::protocol, ErrorScope::session, supported, "the peer cannot agree to our parameters"};
}

}  // namespace

Connection::Connection(ConnectionListener& listener, fabric::Reactor& reactor, Role role, Instant deadline)
    : listener_(listener), reactor_(reactor), role_(role) {
  reactor_.arm(*this, deadline);
}

void Connection::attach(std::unique_ptr<fabric::Stream> stream) {
  stream_ = std::move(stream);
  stream_->set_events(this);
}

void Connection::close() noexcept {
  state_ = State::lost;
  if (armed()) reactor_.cancel(*this);
  if (stream_ != nullptr) stream_->set_events(nullptr);
  stream_.reset();
}

void Connection::on_timer(Instant /*now*/) noexcept {
  lose({ErrorCode::deadline_exceeded, ErrorScope::session, 0,
        "the handshake did not finish in connect.deadline"});
}

void Connection::on_stream(fabric::Stream& /*stream*/) noexcept {
  advance();
}

void Connection::advance() {
  if (state_ == State::lost || stream_ == nullptr) return;
  if (stream_->state() == fabric::StreamState::connecting) return;
  if (stream_->state() == fabric::StreamState::reset) {
    const bool established = state_ == State::established;
    lose({established ? ErrorCode::closed : ErrorCode::unreachable, ErrorScope::session, 0,
          established ? "the peer's host or process is gone" : "nobody answers at that address"});
    return;
  }
  if (role_ == Role::opener && state_ == State::waiting) {
    state_ = State::hello_sent;
    send(hello_);
  }
  flush();
  read_frames();
  if (state_ != State::lost && stream_->state() == fabric::StreamState::peer_closed) {
    lose({ErrorCode::closed, ErrorScope::session, 0, "the peer closed the connection"});
  }
}

void Connection::read_frames() {
  std::array<std::byte, 512> bytes;
  for (;;) {
    const std::size_t count = stream_->read(bytes);
    if (count == 0) return;
    parser_.feed(std::span(bytes).first(count));
    for (;;) {
      auto frame = parser_.next();
      if (!frame) {
        lose(frame.error());
        return;
      }
      if (!frame->has_value()) break;
      handle(**frame);
      if (state_ == State::lost) return;
    }
  }
}

void Connection::handle(const wire::HandshakeFrame& frame) {
  if (const auto* reject = std::get_if<wire::Reject>(&frame);
      reject != nullptr && role_ == Role::opener && state_ == State::hello_sent) {
    lose(error_of(*reject));
  } else if (const auto* hello = std::get_if<wire::Hello>(&frame);
             hello != nullptr && state_ == (role_ == Role::opener ? State::hello_sent : State::waiting)) {
    handle_hello(*hello);
  } else if (std::holds_alternative<wire::Ready>(frame) && role_ == Role::acceptor &&
             state_ == State::hello_sent) {
    state_ = State::established;
    reactor_.cancel(*this);
    listener_.on_established(*this);
  } else {
    lose({ErrorCode::protocol, ErrorScope::session, 0, "a handshake frame out of turn"});
  }
}

void Connection::handle_hello(const wire::Hello& hello) {
  wire::Reject reject;
  const Result<> accepted = listener_.on_hello(*this, hello, reject);
  if (!accepted) {
    if (role_ == Role::acceptor) {
      send(reject);
      flush();
    }
    lose(accepted.error());
    return;
  }
  if (role_ == Role::acceptor) {
    state_ = State::hello_sent;
    send(hello_);
  } else {
    state_ = State::established;
    reactor_.cancel(*this);
    send(wire::Ready{});
  }
  flush();
  if (role_ == Role::opener) listener_.on_established(*this);
}

void Connection::send(const wire::HandshakeFrame& frame) {
  const auto bytes = wire::encode_frame(frame);
  unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
}

void Connection::flush() {
  if (unsent_.empty()) return;
  const std::size_t taken = stream_->write(unsent_);
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(taken));
}

void Connection::lose(const Error& error) {
  if (state_ == State::lost) return;
  state_ = State::lost;
  if (armed()) reactor_.cancel(*this);
  if (stream_ != nullptr) stream_->set_events(nullptr);
  listener_.on_lost(*this, error);
}

}  // namespace bx::engine
