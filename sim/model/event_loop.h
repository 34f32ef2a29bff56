// SPDX-License-Identifier: GPL-2.0-only
// A clock and a queue of events: the part of our simulator that knows nothing of ns-3. FastSimulatorImpl puts
// the ns-3 interface around it; Engine posts to it directly.
#pragma once

#include <cstdint>

#include "libbx/base/check.h"
#include "sim/model/timing_wheel.h"

namespace bx::sim {

class EventLoop {
 public:
  static constexpr std::uint32_t kNoContext = UINT32_MAX;  // ns3::Simulator::NO_CONTEXT

  [[nodiscard]] std::int64_t now() const noexcept { return now_; }            // ps
  [[nodiscard]] const std::int64_t* clock() const noexcept { return &now_; }  // where now() stands
  [[nodiscard]] std::uint64_t executed() const noexcept { return executed_; }
  // Of the event that runs, or that ran last.
  [[nodiscard]] std::uint32_t context() const noexcept { return context_; }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return next_sequence_; }
  // Leaves out sequence numbers below `next`. ns-3 reserves some 32-bit event numbers (EventId::UID).
  void skip_to_sequence(std::uint64_t next) noexcept {
    BX_CHECK(next >= next_sequence_, "sequence numbers only grow");
    next_sequence_ = next;
  }

  // Returns the event's time.
  std::int64_t post(std::int64_t delay, EventFn fn, void* object, void* argument,
                    std::uint32_t context = kNoContext) {
    BX_CHECK(delay >= 0, "an event was posted into the past");
    const std::int64_t time = now_ + delay;
    wheel_.insert({static_cast<std::uint64_t>(time), next_sequence_++, fn, object, argument, context});
    return time;
  }

  // Runs events until none is left, stop() is called or the next one lies past `limit`; in the last case the
  // clock then stands at `limit`. Returns true when none is left.
  bool run(std::int64_t limit) {
    stopped_ = false;
    while (!stopped_) {
      const Event* event = wheel_.pop_until(static_cast<std::uint64_t>(limit));
      if (event == nullptr) break;
      now_ = static_cast<std::int64_t>(event->time);
      sequence_ = event->sequence;
      context_ = event->context;
      ++executed_;
      event->fn(event->object, event->argument);
    }
    context_ = kNoContext;
    if (stopped_) return false;
    if (wheel_.empty()) return true;
    if (limit > now_) now_ = limit;
    return false;
  }
  // Nothing may be pending before that.
  void advance_to(std::int64_t time) noexcept { now_ = time; }
  void stop() noexcept { stopped_ = true; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

  [[nodiscard]] TimingWheel& wheel() noexcept { return wheel_; }
  [[nodiscard]] const TimingWheel& wheel() const noexcept { return wheel_; }

 private:
  TimingWheel wheel_;
  std::int64_t now_ = 0;
  std::uint64_t next_sequence_ = 4;  // the numbers below are reserved by ns-3 (EventId::UID)
  std::uint64_t sequence_ = 0;
  std::uint64_t executed_ = 0;
  std::uint32_t context_ = kNoContext;
  bool stopped_ = false;
};

}  // namespace bx::sim
