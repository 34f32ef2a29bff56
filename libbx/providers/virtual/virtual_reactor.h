// SPDX-License-Identifier: BSD-3-Clause
// fabric::Reactor in virtual time: a worker is at most one pending event. A dispatch at time t runs the due
// timers, then the tasks of the provider (stream events), then the turn; what they did is charged to the
// HostCpu, and the next dispatch starts no earlier than the CPU is free again:
//
//        wake              t            t+c                    next dispatch
//   ------|--wake latency--|---charged---|------- idle ---------|
//                        turn()      doorbells posted in the turn ring
//
// A wake-up while the CPU is idle costs the wake latency of the wait mode; one that finds it busy is noticed
// by the loop when it comes round. A real worker executes c before its last post reaches the device, so a
// provider's doorbells ring at t+c (see Doorbell); a post from outside any dispatch rings at once.
//
// A turn follows every dispatch, whatever caused it, so a stream event needs no wake-up of its own.
// Everything here may be cancelled, detached or destroyed at any moment, from inside a turn, a timer or a
// task as well.
#pragma once

#include <cstdint>

#include "libbx/base/intrusive_list.h"
#include "libbx/fabric/reactor.h"
#include "libbx/fabric/timer_heap.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/host_cpu.h"

namespace bx::virtual_time {

struct ReactorTaskTag;
struct DoorbellTag;

// Something the provider wants done on the worker's CPU, inside a dispatch. One-shot; destroying it takes it
// back.
class ReactorTask : public ListHook<ReactorTaskTag> {
 public:
  virtual void run_task(Instant now) noexcept = 0;

 protected:
  ~ReactorTask() { unlink(); }
};

// A device's hand on the doorbell: on_doorbell() is called when posts made so far reach the device.
class Doorbell : public ListHook<DoorbellTag> {
 public:
  virtual void on_doorbell() noexcept = 0;

 protected:
  ~Doorbell() { unlink(); }
};

class VirtualReactor final : public fabric::Reactor, private fabric::Waker {
 public:
  // Timers the heap holds without growing; more than that grow it, which allocates.
  static constexpr std::size_t kTimersReserved = 1024;

  VirtualReactor(AlarmPool& alarms, HostCpu cpu);
  ~VirtualReactor() override;
  VirtualReactor(const VirtualReactor&) = delete;
  VirtualReactor& operator=(const VirtualReactor&) = delete;

  // fabric::Reactor
  [[nodiscard]] Instant now() const noexcept override { return loop_.now(); }
  void attach(fabric::Turn* turn) noexcept override;
  fabric::Waker& waker() noexcept override { return *this; }
  void arm(fabric::Timer& timer, Instant when) noexcept override;
  void cancel(fabric::Timer& timer) noexcept override;
  fabric::RunEnd run(Instant limit) override { return loop_.run(limit); }
  void stop() noexcept override { loop_.stop(); }
  [[nodiscard]] Duration cpu_time() const noexcept override { return cpu_.busy_time(); }

  // For providers.
  [[nodiscard]] HostCpu& cpu() noexcept { return cpu_; }
  [[nodiscard]] bool dispatching() const noexcept { return dispatching_; }
  // Runs the task in a dispatch, as a wake-up would. Submitting it again before it has run changes nothing.
  void submit(ReactorTask& task) noexcept;
  // Rings now, inside this call, if no dispatch is running; otherwise when the dispatch's work has been paid
  // for, in the order of the first ring.
  void ring(Doorbell& doorbell) noexcept;
  [[nodiscard]] std::uint64_t turns() const noexcept { return turns_; }

 private:
  void wake() noexcept override;
  static void on_dispatch(void* reactor);
  static void on_dispatch_end(void* reactor);
  void dispatch() noexcept;
  bool run_timers(Instant now) noexcept;
  bool run_tasks(Instant now) noexcept;
  void flush_doorbells() noexcept;
  void schedule() noexcept;

  EventLoop& loop_;
  HostCpu cpu_;
  Alarm dispatch_alarm_;
  Alarm end_alarm_;  // end of the charged work of the last dispatch
  fabric::Turn* turn_ = nullptr;
  fabric::TimerHeap timers_{kTimersReserved};
  IntrusiveList<ReactorTask, ReactorTaskTag> tasks_;
  IntrusiveList<Doorbell, DoorbellTag> doorbells_;
  Instant woken_ = kNever;  // when a wake-up that is pending becomes a dispatch
  bool dispatching_ = false;
  bool* destroyed_ = nullptr;  // set by the destructor for a dispatch that is on the stack
  std::uint64_t turns_ = 0;
};

}  // namespace bx::virtual_time
