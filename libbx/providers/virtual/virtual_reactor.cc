// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/virtual_reactor.h"

#include <algorithm>

namespace bx::virtual_time {

VirtualReactor::VirtualReactor(AlarmPool& alarms, HostCpu cpu)
    : loop_(alarms.loop()),
      cpu_(cpu),
      dispatch_alarm_(alarms, &VirtualReactor::on_dispatch, this),
      end_alarm_(alarms, &VirtualReactor::on_dispatch_end, this) {}

VirtualReactor::~VirtualReactor() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  while (tasks_.pop_front() != nullptr) continue;
  while (doorbells_.pop_front() != nullptr) continue;
}

void VirtualReactor::attach(fabric::Turn* turn) noexcept {
  turn_ = turn;
  if (turn != nullptr) wake();
}

void VirtualReactor::wake() noexcept {
  if (woken_ != kNever) return;
  const Instant current = now();
  const bool busy = dispatching_ || cpu_.free_at() > current;
  woken_ = busy ? std::max(cpu_.free_at(), current) : current + cpu_.wake_latency(current);
  schedule();
}

void VirtualReactor::submit(ReactorTask& task) noexcept {
  if (!task.linked()) tasks_.push_back(task);
  wake();
}

void VirtualReactor::ring(Doorbell& doorbell) noexcept {
  if (!dispatching_) return doorbell.on_doorbell();
  if (!doorbell.linked()) doorbells_.push_back(doorbell);
}

// Arms the one event at the earliest moment at which something is due and the CPU is free. During a dispatch
// that moment is not known yet; the end of the dispatch calls again.
void VirtualReactor::schedule() noexcept {
  if (dispatching_) return;
  Instant due = woken_;
  if (!timers_.empty()) due = std::min(due, timers_.first().when());
  if (due == kNever) return dispatch_alarm_.cancel();
  due = std::max(due, cpu_.free_at());
  if (due != dispatch_alarm_.when()) dispatch_alarm_.arm(due);
}

void VirtualReactor::on_dispatch(void* opaque) {
  auto& reactor = *static_cast<VirtualReactor*>(opaque);
  // Socket work from outside a dispatch may have occupied the CPU since the event was posted.
  if (reactor.cpu_.free_at() > reactor.now()) return reactor.schedule();
  reactor.dispatch();
}

void VirtualReactor::on_dispatch_end(void* reactor) {
  static_cast<VirtualReactor*>(reactor)->flush_doorbells();
}

void VirtualReactor::dispatch() noexcept {
  // The doorbells of the last dispatch ring first, even if this dispatch falls on the instant of its end.
  flush_doorbells();
  const Instant current = now();
  if (cpu_.free_at() < current) cpu_.charge_wake(current);  // it was idle, hence asleep
  woken_ = kNever;  // whatever woke it happened before this turn, which sees it
  bool gone = false;
  destroyed_ = &gone;
  dispatching_ = true;
  if (!run_timers(current) || !run_tasks(current)) return;
  fabric::TurnResult result;
  if (turn_ != nullptr) {
    ++turns_;
    result = turn_->turn(current);
    if (gone) return;
  }
  destroyed_ = nullptr;
  dispatching_ = false;
  const Instant end = cpu_.charge_turn(current, result.work);
  // A wake-up during the dispatch is noticed when the loop comes round, like a turn that asks for another.
  if (woken_ != kNever || (result.more && turn_ != nullptr)) woken_ = end;
  if (!doorbells_.empty()) end_alarm_.arm(end);
  schedule();
}

// Only what was due when the dispatch began: a timer that arms itself for now waits for the next dispatch.
// False if the reactor was destroyed meanwhile.
bool VirtualReactor::run_timers(Instant now) noexcept {
  bool* const gone = destroyed_;
  const std::uint64_t armed_before = timers_.next_order();
  while (!timers_.empty()) {
    fabric::Timer& timer = timers_.first();
    if (timer.when() > now || timer.position.order >= armed_before) break;
    timers_.remove(timer);
    timer.on_timer(now);
    if (*gone) return false;
  }
  return true;
}

bool VirtualReactor::run_tasks(Instant now) noexcept {
  bool* const gone = destroyed_;
  IntrusiveList<ReactorTask, ReactorTaskTag> batch;
  while (ReactorTask* task = tasks_.pop_front()) batch.push_back(*task);
  while (ReactorTask* task = batch.pop_front()) {
    task->run_task(now);
    if (!*gone) continue;
    while (batch.pop_front() != nullptr) continue;
    return false;
  }
  return true;
}

void VirtualReactor::flush_doorbells() noexcept {
  end_alarm_.cancel();
  while (Doorbell* doorbell = doorbells_.pop_front()) doorbell->on_doorbell();
}

void VirtualReactor::arm(fabric::Timer& timer, Instant when) noexcept {
  if (timer.armed()) timers_.remove(timer);
  // A past instant becomes the present, so that a timer armed by a callback sorts behind those already due.
  timers_.add(timer, *this, std::max(when, now()));
  schedule();
}

void VirtualReactor::cancel(fabric::Timer& timer) noexcept {
  if (!timer.armed()) return;
  timers_.remove(timer);
  schedule();
}

}  // namespace bx::virtual_time
