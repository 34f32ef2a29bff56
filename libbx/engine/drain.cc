// SPDX-License-Identifier: BSD-3-Clause
// The way out of a worker that serves: no new requests, the old ones answered, and closed only when the
// peers' NICs have what was sent. Its peers read what they have been sent before they take note that it has
// left.
#include <utility>

#include "libbx/engine/worker.h"

namespace bx::engine {

void Worker::drain(DrainAwaiter& awaiter, std::coroutine_handle<> awaiting) noexcept {
  awaiter.awaiting_ = awaiting;
  draining_ = true;
  for (auto& listening : services_) {
    listening->listener.reset();
    listening->place.serving_max = 0;
  }
  draining_waiters_.push_back(awaiter);
  if (awaiter.deadline_ != kNever) reactor_.arm(awaiter, awaiter.deadline_);
  wake();
}

void Worker::forget(DrainAwaiter& awaiter) noexcept {
  if (awaiter.armed()) reactor_.cancel(awaiter);
}

void Worker::on_drain_deadline(DrainAwaiter& awaiter) noexcept {
  awaiter.unlink();
  resume(awaiter, fail(ErrorCode::deadline_exceeded, ErrorScope::operation,
                       "the worker was closed with something unfinished"));
  close();
  finish_drain({});
}

// At the end of a turn.
void Worker::step_drain() noexcept {
  if (!closed_) {
    if (!idle()) return;
    bool quiet = true;
    for (const auto& peer : peers_) {
      if (peer == nullptr || peer->state != PeerState::open) continue;
      if (peer->queued > 0) return;
      for (PeerLane& each : peer->all_lanes()) {
        if (!each.fenced && each.lane->data_slots() > 0) {
          each.fenced = true;
          each.lane->stage_fence();
          mark_dirty(*peer);
        }
        quiet = quiet && each.fenced && each.lane->quiet();
      }
    }
    if (!quiet) return;
    close();
  }
  finish_drain({});
}

void Worker::finish_drain(const Result<>& result) noexcept {
  while (Waiter* waiter = draining_waiters_.pop_front()) {
    forget(static_cast<DrainAwaiter&>(*waiter));
    resume(*waiter, result);
  }
}

}  // namespace bx::engine

namespace bx {

DrainAwaiter::~DrainAwaiter() {
  if (armed()) worker_->forget(*this);
}

void DrainAwaiter::await_suspend(std::coroutine_handle<> awaiting) noexcept {
  worker_->drain(*this, awaiting);
}

void DrainAwaiter::on_timer(Instant /*now*/) noexcept {
  worker_->on_drain_deadline(*this);
}

}  // namespace bx
