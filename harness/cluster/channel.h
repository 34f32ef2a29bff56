// SPDX-License-Identifier: GPL-2.0-only
// One end of a control connection: a TCP socket that never blocks, with whole messages in and out.
//
// Invariant: once it is closed it stays so, and why() says why in a few words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/cluster/frame.h"

namespace bx::harness {

class Channel {
 public:
  // Takes the socket over.
  explicit Channel(int fd, std::size_t bytes_max = kFrameBytesMax);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Waits up to `seconds` for the connection to "10.0.0.1" or "fd00::1". The error is a sentence.
  static Parsed<int> dial(const std::string& address, std::uint16_t port, int seconds);

  void send(const Json& message);
  // The next message that is whole; reads what has come. Nothing if there is none, or the channel is closed.
  [[nodiscard]] std::optional<Json> receive();
  // Writes what the socket takes.
  void flush();
  // For at most so long, until all is written.
  void drain(int milliseconds);
  void set_limit(std::size_t bytes_max) noexcept { reader_.set_limit(bytes_max); }
  void close(std::string why);

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] bool wants_write() const noexcept { return !outgoing_.empty(); }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  void read_socket();

  int fd_;
  FrameReader reader_;
  std::string outgoing_;
  std::string why_;
  bool ended_ = false;  // the peer has said all
};

// A socket that listens at an address of this machine; closed when it goes.
class ControlListener {
 public:
  // Port 0 takes a free one. The error is a sentence.
  static Parsed<ControlListener> open(const std::string& address, std::uint16_t port = 0);
  ~ControlListener();
  ControlListener(ControlListener&& other) noexcept;
  ControlListener& operator=(ControlListener&& other) noexcept;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // A connection that has come, or -1.
  [[nodiscard]] int accept() const;

 private:
  ControlListener(int fd, std::uint16_t port) : fd_(fd), port_(port) {}

  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace bx::harness
