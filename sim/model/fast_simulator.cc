// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/fast_simulator.h"

#include <ns3/event-impl.h>
#include <ns3/nstime.h>

#include <algorithm>
#include <limits>

namespace bx::sim {
namespace {

using Uid = ns3::EventId::UID;

bool is_destroy_event(const ns3::EventId& id) {
  return id.GetUid() == Uid::DESTROY;
}

}  // namespace

// A static object of ns-3's registration macro: makes the TypeId known by name.
NS_OBJECT_ENSURE_REGISTERED(FastSimulatorImpl);

ns3::TypeId FastSimulatorImpl::GetTypeId() {
  static const ns3::TypeId id = ns3::TypeId("bx::sim::FastSimulatorImpl")
                                    .SetParent<ns3::SimulatorImpl>()
                                    .SetGroupName("ByteExpress")
                                    .AddConstructor<FastSimulatorImpl>();
  return id;
}

void FastSimulatorImpl::Destroy() {
  // First in, first out, as in ns-3; an event may add another.
  while (!destroy_events_.empty()) {
    const ns3::EventId id = destroy_events_.front();
    destroy_events_.pop_front();
    if (!id.PeekEventImpl()->IsCancelled()) id.PeekEventImpl()->Invoke();
  }
  drop_pending();
}

bool FastSimulatorImpl::IsFinished() const {
  return loop_.stopped() || loop_.wheel().empty();
}

void FastSimulatorImpl::Stop() {
  loop_.stop();
}

void FastSimulatorImpl::Stop(const ns3::Time& delay) {
  loop_.post(
      delay.GetTimeStep(), [](void* loop, void*) { static_cast<EventLoop*>(loop)->stop(); }, &loop_, nullptr);
}

ns3::EventId FastSimulatorImpl::Schedule(const ns3::Time& delay, ns3::EventImpl* event) {
  return insert(delay, loop_.context(), event);
}

void FastSimulatorImpl::ScheduleWithContext(std::uint32_t context, const ns3::Time& delay,
                                            ns3::EventImpl* event) {
  insert(delay, context, event);
}

ns3::EventId FastSimulatorImpl::ScheduleNow(ns3::EventImpl* event) {
  return insert(ns3::TimeStep(0), loop_.context(), event);
}

ns3::EventId FastSimulatorImpl::ScheduleDestroy(ns3::EventImpl* event) {
  ns3::EventId id(ns3::Ptr<ns3::EventImpl>(event, false), static_cast<std::uint64_t>(loop_.now()),
                  EventLoop::kNoContext, Uid::DESTROY);
  destroy_events_.push_back(id);
  return id;
}

void FastSimulatorImpl::Remove(const ns3::EventId& id) {
  if (IsExpired(id)) return;
  if (is_destroy_event(id)) {
    destroy_events_.erase(std::find(destroy_events_.begin(), destroy_events_.end(), id));
    return;
  }
  const bool erased = loop_.wheel().erase(id.GetTs(), id.GetUid(), id.PeekEventImpl());
  BX_CHECK(erased, "an event that has not expired is in the queue");
  id.PeekEventImpl()->Cancel();
  id.PeekEventImpl()->Unref();  // the queue's reference
}

void FastSimulatorImpl::Cancel(const ns3::EventId& id) {
  if (!IsExpired(id)) id.PeekEventImpl()->Cancel();
}

bool FastSimulatorImpl::IsExpired(const ns3::EventId& id) const {
  if (id.PeekEventImpl() == nullptr || id.PeekEventImpl()->IsCancelled()) return true;
  if (is_destroy_event(id)) {
    return std::find(destroy_events_.begin(), destroy_events_.end(), id) == destroy_events_.end();
  }
  const auto now = static_cast<std::uint64_t>(loop_.now());
  if (id.GetTs() != now) return id.GetTs() < now;
  // Of this instant's events those with a higher number are still to come. The id has only the low 32 bits of
  // the number: enough until one more has been needed, then the queue itself is asked.
  if (loop_.next_sequence() <= std::numeric_limits<std::uint32_t>::max()) {
    return id.GetUid() <= loop_.sequence();
  }
  return !loop_.wheel().contains(id.GetTs(), id.GetUid(), id.PeekEventImpl());
}

void FastSimulatorImpl::Run() {
  loop_.run(std::numeric_limits<std::int64_t>::max());
}

ns3::Time FastSimulatorImpl::Now() const {
  return ns3::TimeStep(static_cast<std::uint64_t>(loop_.now()));
}

ns3::Time FastSimulatorImpl::GetDelayLeft(const ns3::EventId& id) const {
  if (IsExpired(id)) return ns3::TimeStep(0);
  return ns3::TimeStep(id.GetTs() - static_cast<std::uint64_t>(loop_.now()));
}

ns3::Time FastSimulatorImpl::GetMaximumSimulationTime() const {
  return ns3::TimeStep(static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
}

void FastSimulatorImpl::SetScheduler(ns3::ObjectFactory /*factory*/) {}

std::uint32_t FastSimulatorImpl::GetSystemId() const {
  return 0;
}

std::uint32_t FastSimulatorImpl::GetContext() const {
  return loop_.context();
}

std::uint64_t FastSimulatorImpl::GetEventCount() const {
  return loop_.executed();
}

void FastSimulatorImpl::DoDispose() {
  drop_pending();
  destroy_events_.clear();
  ns3::SimulatorImpl::DoDispose();
}

void FastSimulatorImpl::run_event(void* /*self*/, void* event) {
  auto* impl = static_cast<ns3::EventImpl*>(event);
  impl->Invoke();
  impl->Unref();
}

ns3::EventId FastSimulatorImpl::insert(const ns3::Time& delay, std::uint32_t context, ns3::EventImpl* event) {
  // The low half of the number becomes the uid, and uids below VALID have a meaning of their own.
  const std::uint64_t low = loop_.next_sequence() % (std::uint64_t{1} << 32U);
  if (low < Uid::VALID) loop_.skip_to_sequence(loop_.next_sequence() - low + Uid::VALID);
  const auto uid = static_cast<std::uint32_t>(loop_.next_sequence());
  const std::int64_t time = loop_.post(delay.GetTimeStep(), &run_event, this, event, context);
  return {ns3::Ptr<ns3::EventImpl>(event), static_cast<std::uint64_t>(time), context, uid};
}

// Our own events own nothing; those of ns-3 hold a reference that the queue has taken over.
void FastSimulatorImpl::drop_pending() {
  loop_.wheel().announce_to(nullptr);  // what the events were to touch may be gone
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  while (const Event* event = loop_.wheel().pop_until(kAll)) {
    if (event->fn == &run_event) static_cast<ns3::EventImpl*>(event->argument)->Unref();
  }
}

}  // namespace bx::sim
