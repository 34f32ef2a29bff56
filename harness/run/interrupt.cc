// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/interrupt.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace bx::harness {
namespace {

sigset_t interrupting_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupt::Interrupt() : fd_(-1) {
  const sigset_t signals = interrupting_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  fd_ = ::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

Interrupt::~Interrupt() {
  if (fd_ >= 0) ::close(fd_);
}

bool Interrupt::take() noexcept {
  signalfd_siginfo info{};
  return ::read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
}

}  // namespace bx::harness
