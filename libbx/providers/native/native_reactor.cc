// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/native/native_reactor.h"

#include <algorithm>

namespace bx::native {

NativeReactor::~NativeReactor() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  loop_.remove(*this);
}

void NativeReactor::attach(fabric::Turn* turn) noexcept {
  turn_ = turn;
  if (turn != nullptr) wake();
}

void NativeReactor::wake() noexcept {
  if (!woken_.exchange(true)) loop_.interrupt();
}

void NativeReactor::arm(fabric::Timer& timer, Instant when) noexcept {
  if (timer.armed()) timers_.remove(timer);
  timers_.add(timer, *this, std::max(when, now()));
}

void NativeReactor::cancel(fabric::Timer& timer) noexcept {
  if (timer.armed()) timers_.remove(timer);
}

bool NativeReactor::dispatch(Instant now) noexcept {
  bool gone = false;
  destroyed_ = &gone;
  const bool fired = run_timers(now);
  if (gone) return true;
  const bool woken = woken_.load(std::memory_order_relaxed) && woken_.exchange(false);
  if ((woken || fired) && turn_ != nullptr) {
    const fabric::TurnResult result = turn_->turn(now);
    if (gone) return true;
    if (result.more) woken_.store(true);
  }
  destroyed_ = nullptr;
  return woken || fired;
}

// Only what was armed before this dispatch: a timer that arms itself for now waits for the next one.
bool NativeReactor::run_timers(Instant now) noexcept {
  bool* const gone = destroyed_;
  bool fired = false;
  const std::uint64_t armed_before = timers_.next_order();
  while (!timers_.empty()) {
    fabric::Timer& timer = timers_.first();
    if (timer.when() > now || timer.position.order >= armed_before) break;
    timers_.remove(timer);
    fired = true;
    timer.on_timer(now);
    if (*gone) return true;
  }
  return fired;
}

}  // namespace bx::native
