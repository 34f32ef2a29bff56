// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/engine_stock.h"

#include <ns3/default-simulator-impl.h>
#include <ns3/object-factory.h>
#include <ns3/pointer.h>
#include <ns3/simulator.h>

namespace bx::sim {

NS_OBJECT_ENSURE_REGISTERED(RunLimit);
NS_OBJECT_ENSURE_REGISTERED(LimitedScheduler);

ns3::TypeId RunLimit::GetTypeId() {
  static const ns3::TypeId id = ns3::TypeId("bx::sim::RunLimit").SetParent<ns3::Object>();
  return id;
}

ns3::TypeId LimitedScheduler::GetTypeId() {
  static const ns3::TypeId id =
      ns3::TypeId("bx::sim::LimitedScheduler")
          .SetParent<ns3::MapScheduler>()
          .AddConstructor<LimitedScheduler>()
          .AddAttribute("Limit", "The last instant whose events may run.", ns3::PointerValue(),
                        ns3::MakePointerAccessor(&LimitedScheduler::set_limit),
                        ns3::MakePointerChecker<RunLimit>());
  return id;
}

bool LimitedScheduler::IsEmpty() const {
  return truly_empty() || (limit_ != nullptr && PeekNext().key.m_ts > limit_->limit);
}

void LimitedScheduler::set_limit(ns3::Ptr<RunLimit> limit) {
  limit_ = limit;
  if (limit_ != nullptr) limit_->scheduler = this;
}

Engine::Stock::Stock() : limit_(ns3::CreateObject<RunLimit>()) {
  ns3::Simulator::SetImplementation(ns3::CreateObject<ns3::DefaultSimulatorImpl>());
  ns3::ObjectFactory scheduler;
  scheduler.SetTypeId(LimitedScheduler::GetTypeId());
  scheduler.Set("Limit", ns3::PointerValue(limit_));
  ns3::Simulator::SetScheduler(scheduler);
}

void Engine::Stock::post(Picoseconds delay, EventFn fn, void* object, void* argument) {
  BX_CHECK(delay.count() >= 0, "an event was posted into the past");
  if (free_ == nullptr) {
    events_.push_back(ns3::Create<NativeEvent>());
    free_ = ns3::PeekPointer(events_.back());
    free_->owner = this;
  }
  NativeEvent* event = free_;
  free_ = event->next_free;
  event->fn = fn;
  event->object = object;
  event->argument = argument;
  event->Ref();  // the simulator's reference
  ns3::Simulator::ScheduleWithContext(ns3::Simulator::NO_CONTEXT,
                                      ns3::TimeStep(static_cast<std::uint64_t>(delay.count())), event);
}

void Engine::Stock::NativeEvent::Notify() {
  const EventFn call = fn;
  void* const first = object;
  void* const second = argument;
  next_free = owner->free_;
  owner->free_ = this;
  call(first, second);
}

bool Engine::Stock::run(Picoseconds limit) {
  stopped_ = false;
  limit_->limit = static_cast<std::uint64_t>(limit.count());
  ns3::Simulator::Run();
  if (stopped_) return false;
  if (limit_->scheduler->truly_empty()) return true;
  if (ns3::Simulator::Now().GetTimeStep() < limit.count()) {
    // Only an event moves ns-3's clock.
    post(
        limit - Picoseconds{ns3::Simulator::Now().GetTimeStep()}, [](void*, void*) {}, nullptr, nullptr);
    ns3::Simulator::Run();
  }
  return false;
}

void Engine::Stock::stop() {
  stopped_ = true;
  ns3::Simulator::Stop();
}

}  // namespace bx::sim
