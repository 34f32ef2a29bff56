// SPDX-License-Identifier: GPL-2.0-only
// The model's events on ns-3's own simulator: ns3::DefaultSimulatorImpl with its map scheduler. It is the
// reference that our own engine is held against, and slower by an order of magnitude.
#pragma once

#include <ns3/event-impl.h>
#include <ns3/map-scheduler.h>
#include <ns3/ptr.h>

#include <cstdint>
#include <deque>
#include <limits>

#include "sim/model/engine.h"

namespace bx::sim {

class LimitedScheduler;

// How far a run may go; shared by the engine, which sets it, and the scheduler, which obeys.
class RunLimit final : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t limit = kNone;  // ps
  LimitedScheduler* scheduler = nullptr;
};

// ns-3 has no "run until": a stop event at the limit would either cut off later events of the same instant or
// move the clock when nothing else is left. This scheduler hides what lies past the limit instead.
class LimitedScheduler final : public ns3::MapScheduler {
 public:
  static ns3::TypeId GetTypeId();
  bool IsEmpty() const override;
  [[nodiscard]] bool truly_empty() const { return ns3::MapScheduler::IsEmpty(); }

 private:
  void set_limit(ns3::Ptr<RunLimit> limit);
  ns3::Ptr<RunLimit> limit_;
};

class Engine::Stock {
 public:
  Stock();
  void post(Picoseconds delay, EventFn fn, void* object, void* argument);
  bool run(Picoseconds limit);
  void stop();
  void lift_limit() { limit_->limit = RunLimit::kNone; }

 private:
  // Returns to the engine's free list when it runs, so that posting allocates only at a new peak.
  class NativeEvent final : public ns3::EventImpl {
   public:
    Stock* owner = nullptr;
    NativeEvent* next_free = nullptr;
    EventFn fn = nullptr;
    void* object = nullptr;
    void* argument = nullptr;

   private:
    void Notify() override;
  };

  ns3::Ptr<RunLimit> limit_;
  bool stopped_ = false;
  NativeEvent* free_ = nullptr;
  std::deque<ns3::Ptr<NativeEvent>> events_;
};

}  // namespace bx::sim
