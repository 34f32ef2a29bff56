// SPDX-License-Identifier: GPL-2.0-only
// Our ns3::SimulatorImpl: the ns-3 face of EventLoop, so that every ns-3 object (TCP stack, applications,
// tracing) runs on the same clock and in the same order as the model's own events.
//
// Differences from ns3::DefaultSimulatorImpl: one queue of its own (SetScheduler is ignored); event numbers
// are 64 bits wide inside, so a run may have more than 2^32 events; ScheduleWithContext may be called from
// the simulation's thread only.
#pragma once

#include <ns3/simulator-impl.h>

#include <deque>

#include "sim/model/event_loop.h"

namespace bx::sim {

class FastSimulatorImpl final : public ns3::SimulatorImpl {
 public:
  static ns3::TypeId GetTypeId();

  [[nodiscard]] EventLoop& loop() noexcept { return loop_; }

  void Destroy() override;
  bool IsFinished() const override;
  void Stop() override;
  void Stop(const ns3::Time& delay) override;
  ns3::EventId Schedule(const ns3::Time& delay, ns3::EventImpl* event) override;
  void ScheduleWithContext(std::uint32_t context, const ns3::Time& delay, ns3::EventImpl* event) override;
  ns3::EventId ScheduleNow(ns3::EventImpl* event) override;
  ns3::EventId ScheduleDestroy(ns3::EventImpl* event) override;
  void Remove(const ns3::EventId& id) override;
  void Cancel(const ns3::EventId& id) override;
  bool IsExpired(const ns3::EventId& id) const override;
  void Run() override;
  ns3::Time Now() const override;
  ns3::Time GetDelayLeft(const ns3::EventId& id) const override;
  ns3::Time GetMaximumSimulationTime() const override;
  void SetScheduler(ns3::ObjectFactory factory) override;
  std::uint32_t GetSystemId() const override;
  std::uint32_t GetContext() const override;
  std::uint64_t GetEventCount() const override;

 private:
  void DoDispose() override;
  static void run_event(void* self, void* event);
  ns3::EventId insert(const ns3::Time& delay, std::uint32_t context, ns3::EventImpl* event);
  void drop_pending();

  EventLoop loop_;
  std::deque<ns3::EventId> destroy_events_;
};

}  // namespace bx::sim
