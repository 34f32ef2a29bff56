// SPDX-License-Identifier: BSD-3-Clause
// The clock and the event queue beneath a virtual-time provider. The loopback provider brings a heap of its
// own; the simulator puts its engine behind this interface. Everything above (Alarm, VirtualReactor,
// VirtualStreams) is shared by both.
//
// Invariants: events run in the order of (time, order of posting); time never goes back; now() is constant
// while an event runs.
#pragma once

#include <cstdint>

#include "libbx/base/time.h"
#include "libbx/fabric/reactor.h"

namespace bx::virtual_time {

class EventLoop {
 public:
  // A plain function and two words: an event costs no allocation.
  using EventFn = void (*)(void* object, void* argument);

  virtual ~EventLoop() = default;
  // A loop whose clock is finer than a nanosecond rounds down.
  [[nodiscard]] virtual Instant now() const noexcept = 0;
  // Calls fn(object, argument) once, `delay` (zero or more) from now, never from inside post. There is no way
  // to take an event back: whoever may be destroyed first uses an Alarm.
  virtual void post(Duration delay, EventFn fn, void* object, void* argument) = 0;
  // Runs events until stop(), until none is left (idle), or until the next one lies past `limit`, at which
  // the clock then stands.
  virtual fabric::RunEnd run(Instant limit) = 0;
  // Ends the run() in progress after the current event; outside run() it does nothing.
  virtual void stop() noexcept = 0;
};

}  // namespace bx::virtual_time
