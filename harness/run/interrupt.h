// SPDX-License-Identifier: GPL-2.0-only
// Ctrl-C as something that can be asked for, without a signal handler and so without a global: SIGINT and
// SIGTERM are blocked for the process and arrive on a file descriptor. They stay blocked afterwards: a second
// Ctrl-C must not kill the process while it writes what it has measured.
#pragma once

namespace bx::harness {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Readable when a signal has arrived.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  // Takes one signal that has arrived; false if there is none.
  bool take() noexcept;

 private:
  int fd_;
};

}  // namespace bx::harness
