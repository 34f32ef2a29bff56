// SPDX-License-Identifier: BSD-3-Clause
// An event that can be moved and taken back, for objects that may be destroyed while it is pending. An
// EventLoop cannot forget an event, so an alarm leaves the old ones in the loop and ignores them when they
// fire; it posts a new one only if none is pending at or before the new time. A periodically moved alarm
// therefore does not fill the loop.
//
//   Alarm (in the owner)  ->  AlarmCore (in the pool)  <-  events in the loop
//
// The core outlives the alarm until its last event has fired. All memory is taken when the Alarm is made.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/time.h"
#include "libbx/providers/virtual/event_loop.h"

namespace bx::virtual_time {

class AlarmPool;

class Alarm {
 public:
  using Fn = void (*)(void* object);

  // `fn(object)` is called from the loop, never from inside arm().
  Alarm(AlarmPool& pool, Fn fn, void* object);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Fires once at `when` (in the past: now), in place of what was armed before.
  void arm(Instant when);
  void cancel() noexcept;
  [[nodiscard]] bool armed() const noexcept;
  [[nodiscard]] Instant when() const noexcept;  // kNever if not armed

 private:
  friend class AlarmPool;
  struct Core;
  Core* core_;
};

// Must outlive its alarms and every run of the loop. One per fabric.
class AlarmPool {
 public:
  explicit AlarmPool(EventLoop& loop);
  ~AlarmPool();
  AlarmPool(const AlarmPool&) = delete;
  AlarmPool& operator=(const AlarmPool&) = delete;
  [[nodiscard]] EventLoop& loop() noexcept { return loop_; }

 private:
  friend class Alarm;
  Alarm::Core* take();
  void release(Alarm::Core& core) noexcept;
  static void on_event(void* core, void*);

  EventLoop& loop_;
  std::vector<std::unique_ptr<Alarm::Core>> cores_;
  Alarm::Core* free_ = nullptr;
};

}  // namespace bx::virtual_time
