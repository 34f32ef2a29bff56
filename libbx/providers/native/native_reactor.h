// SPDX-License-Identifier: BSD-3-Clause
// fabric::Reactor of one host on a real machine: its timers and its turns, driven by the thread's NativeLoop.
// A turn follows every wake-up, timer and socket event, and comes again while the last one asked for more.
#pragma once

#include <atomic>

#include "libbx/fabric/reactor.h"
#include "libbx/fabric/timer_heap.h"
#include "libbx/providers/native/native_loop.h"

namespace bx::native {

class NativeReactor final : public fabric::Reactor, private fabric::Waker {
 public:
  static constexpr std::size_t kTimersReserved = 1024;

  explicit NativeReactor(NativeLoop& loop) : loop_(loop) { loop_.add(*this); }
  ~NativeReactor() override;
  NativeReactor(const NativeReactor&) = delete;
  NativeReactor& operator=(const NativeReactor&) = delete;

  // fabric::Reactor
  [[nodiscard]] Instant now() const noexcept override { return loop_.now(); }
  void attach(fabric::Turn* turn) noexcept override;
  fabric::Waker& waker() noexcept override { return *this; }
  void arm(fabric::Timer& timer, Instant when) noexcept override;
  void cancel(fabric::Timer& timer) noexcept override;
  fabric::RunEnd run(Instant limit) override { return loop_.run(limit); }
  void stop() noexcept override { loop_.stop(); }
  [[nodiscard]] Duration cpu_time() const noexcept override { return NativeLoop::thread_cpu_time(); }

  // For the loop and the host's sockets. True if anything was done.
  bool dispatch(Instant now) noexcept;
  [[nodiscard]] bool woken() const noexcept { return woken_.load(); }
  [[nodiscard]] Instant next_timer() const noexcept {
    return timers_.empty() ? kNever : timers_.first().when();
  }

 private:
  void wake() noexcept override;
  bool run_timers(Instant now) noexcept;

  NativeLoop& loop_;
  fabric::TimerHeap timers_{kTimersReserved};
  fabric::Turn* turn_ = nullptr;
  std::atomic<bool> woken_{false};
  bool* destroyed_ = nullptr;  // set by the destructor for a dispatch that is on the stack
};

}  // namespace bx::native
