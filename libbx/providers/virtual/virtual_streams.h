// SPDX-License-Identifier: BSD-3-Clause
// fabric::StreamNetwork of one virtual-time host: a message-level model of kernel TCP. It has latency, a rate
// a host, bounded buffers with back-pressure, half-close and reset; it has no packets, no loss and no
// congestion control. Socket work is charged to the host's CPU. Bytes written inside a turn leave at the
// beginning of that turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "libbx/base/intrusive_list.h"
#include "libbx/fabric/stream.h"
#include "libbx/providers/virtual/stream_connection.h"
#include "libbx/providers/virtual/stream_world.h"
#include "libbx/providers/virtual/transmitter.h"
#include "libbx/providers/virtual/virtual_reactor.h"

namespace bx::virtual_time {

class VirtualStreams;

class VirtualStream final : public fabric::Stream, private ReactorTask {
 public:
  VirtualStream(StreamWorld& world, StreamConnection& connection, std::size_t side,
                fabric::StreamEvents* events);
  ~VirtualStream() override;
  [[nodiscard]] fabric::StreamState state() const noexcept override { return connection_.state(side_); }
  std::size_t write(std::span<const std::byte> bytes) noexcept override {
    return connection_.write(side_, bytes);
  }
  std::size_t read(std::span<std::byte> out) noexcept override { return connection_.read(side_, out); }
  void close_write() noexcept override { connection_.close_write(side_); }
  void reset() noexcept override { connection_.reset(side_); }
  void set_events(fabric::StreamEvents* events) noexcept override;

  // For the connection: something changed, so tell the user from its reactor.
  void notify() noexcept;
  // For the connection: the reactor is going away.
  void forget_reactor() noexcept { unlink(); }

 private:
  void run_task(Instant now) noexcept override;

  StreamWorld& world_;
  StreamConnection& connection_;
  std::size_t side_;
  fabric::StreamEvents* events_;
};

class VirtualListener final : public fabric::Listener, private ReactorTask {
 public:
  VirtualListener(VirtualStreams& host, std::uint16_t port, fabric::StreamAcceptor& acceptor);
  ~VirtualListener() override;
  // For the connection: true if it now waits for on_accept.
  bool offer(StreamConnection& connection) noexcept;
  // For VirtualStreams: the host is going away.
  void vanish() noexcept;

 private:
  void run_task(Instant now) noexcept override;
  void refuse_pending() noexcept;

  VirtualStreams* host_;  // null once the host has vanished
  StreamWorld& world_;
  std::uint16_t port_;
  fabric::StreamAcceptor& acceptor_;
  IntrusiveList<StreamConnection, StreamConnection::PendingTag> pending_;
  std::uint32_t pending_count_ = 0;
  bool* destroyed_ = nullptr;  // set by the destructor for an on_accept that is on the stack
};

class VirtualStreams final : public fabric::StreamNetwork {
 public:
  VirtualStreams(StreamWorld& world, VirtualReactor& reactor, std::string_view host);
  // The host disappears: its connections are reset at both ends. Streams and listeners that are still held
  // stay valid and do nothing more.
  ~VirtualStreams() override;
  Result<std::unique_ptr<fabric::Listener>> listen(std::uint16_t port,
                                                   fabric::StreamAcceptor& acceptor) override;
  Result<std::unique_ptr<fabric::Stream>> connect(std::string_view host, std::uint16_t port,
                                                  fabric::StreamEvents& events) override;

  // For connections and listeners.
  [[nodiscard]] bool silent() const noexcept { return world_.silent(name_); }
  [[nodiscard]] VirtualReactor& reactor() noexcept { return reactor_; }
  [[nodiscard]] StreamWorld& world() noexcept { return world_; }
  [[nodiscard]] VirtualListener* find_listener(std::uint16_t port) noexcept;
  void remove_listener(std::uint16_t port) noexcept { listeners_.erase(port); }
  // Occupies the host's transmitter for `bytes`; returns when the last of them has left.
  Instant transmit(std::size_t bytes) noexcept { return transmitter_.occupy(world_.now(), bytes); }

 private:
  StreamWorld& world_;
  VirtualReactor& reactor_;
  std::string name_;
  std::map<std::uint16_t, VirtualListener*> listeners_;
  Transmitter transmitter_;
};

}  // namespace bx::virtual_time
