// SPDX-License-Identifier: BSD-3-Clause
// The run loop of one thread on a real machine: its clock, its sockets (epoll), the completion queues that
// are armed, and the reactors of the hosts it runs (one in production; several in tests and in a process that
// plays several hosts). An iteration:
//
//   reactors: due timers, then a turn if woken --> armed queues: anything there? --> sockets, now and then
//   nothing happened: spin on, or, by the wait mode, ask the queues for an interrupt, look once more, and
//   sleep
//
// Looking again between asking and sleeping is what closes the race of a completion that comes in between.
//
// Invariants: callbacks run from run() only, never from inside a call of the user's; whatever registered may
// unregister at any moment, from inside a callback as well.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libbx/base/intrusive_list.h"
#include "libbx/base/result.h"
#include "libbx/base/time.h"
#include "libbx/fabric/reactor.h"

namespace bx::native {

using fabric::WaitMode;

struct WaitConfig {
  WaitMode mode = WaitMode::adaptive;
  Duration spin{50'000};  // of adaptive: how long it polls after something happened
};

// A file descriptor's owner.
class FdListener {
 public:
  virtual void on_ready(std::uint32_t epoll_events) noexcept = 0;

 protected:
  ~FdListener() = default;
};

// A completion queue as the loop sees it; linked while it is armed.
class ArmedQueue : public ListHook<> {
 public:
  // Whether a completion is there. If so the queue is no longer armed and has called its waker.
  virtual bool look() noexcept = 0;
  // Asks the device to make the queue's file descriptor readable at the next completion.
  virtual void request_interrupt() noexcept = 0;

 protected:
  ~ArmedQueue() { unlink(); }
};

class NativeReactor;

class NativeLoop {
 public:
  // Errors: exhausted (file descriptors).
  static Result<std::unique_ptr<NativeLoop>> create(const WaitConfig& wait);
  ~NativeLoop();
  NativeLoop(const NativeLoop&) = delete;
  NativeLoop& operator=(const NativeLoop&) = delete;

  // Since the loop was made. Inside a callback it stands still.
  [[nodiscard]] Instant now() const noexcept { return in_callbacks_ ? now_ : read_clock(); }
  // CPU time of the calling thread.
  [[nodiscard]] static Duration thread_cpu_time() noexcept;
  fabric::RunEnd run(Instant limit) noexcept;
  void stop() noexcept { stopped_ = true; }

  // Edge-triggered: on_ready is called when readiness begins. False if the system has no room for it.
  bool watch(int fd, FdListener& listener) noexcept;
  // Its events of the current iteration are dropped too.
  void forget(int fd, FdListener& listener) noexcept;
  void arm(ArmedQueue& queue) noexcept {
    if (!queue.linked()) armed_.push_back(queue);
  }
  void add(NativeReactor& reactor) { reactors_.push_back(&reactor); }
  void remove(NativeReactor& reactor) noexcept;
  // Ends a sleep, from any thread.
  void interrupt() noexcept;

 private:
  static constexpr std::size_t kEventBatch = 64;
  // While it spins the loop looks at the sockets this often: a look is a system call.
  static constexpr Duration kSocketInterval{20'000};

  NativeLoop(const WaitConfig& wait, int epoll_fd, int wake_fd);
  [[nodiscard]] Instant read_clock() const noexcept;
  bool run_reactors() noexcept;
  bool look_at_queues() noexcept;
  bool look_at_sockets(Duration timeout) noexcept;
  bool sleep(Instant limit) noexcept;

  WaitConfig wait_;
  int epoll_fd_;
  int wake_fd_;
  std::int64_t began_ns_;
  Instant now_{};
  Instant active_{};   // when something last happened
  Instant sockets_{};  // when they were last looked at
  bool in_callbacks_ = false;
  bool stopped_ = false;
  std::atomic<bool> sleeping_{false};
  std::vector<NativeReactor*> reactors_;  // null: removed during an iteration
  IntrusiveList<ArmedQueue> armed_;
  std::array<epoll_event, kEventBatch> events_{};
  std::span<epoll_event> batch_{};  // of events_, not yet delivered
};

}  // namespace bx::native
