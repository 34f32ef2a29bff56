// SPDX-License-Identifier: GPL-2.0-only
// A deadline over an event queue that cannot forget: moving the deadline later costs nothing, and the event
// re-posts itself for what is left. A timer of constant duration has at most one event pending. Only a
// deadline that moves before the pending event, as after a change of the duration, costs an event more; the
// earlier one then comes to nothing.
#pragma once

#include "sim/model/units.h"

namespace bx::sim {

class LazyTimer {
 public:
  [[nodiscard]] bool armed() const noexcept { return deadline_ != kNone; }
  // `post(when)` must bring the event to expired() at `when`.
  template <class Post>
  void arm(Picoseconds deadline, Post post) {
    deadline_ = deadline;
    if (deadline >= pending_) return;
    pending_ = deadline;
    post(deadline);
  }
  void disarm() noexcept { deadline_ = kNone; }
  // An event is here. True, and disarmed, if the deadline is too.
  template <class Post>
  [[nodiscard]] bool expired(Picoseconds now, Post post) {
    if (now < pending_) return false;  // void: the deadline has moved forward, or was met
    pending_ = kNone;
    if (deadline_ == kNone) return false;
    if (deadline_ > now) {
      pending_ = deadline_;
      post(deadline_);
      return false;
    }
    deadline_ = kNone;
    return true;
  }
  // The pending event has been made void.
  void reset() noexcept { deadline_ = pending_ = kNone; }

 private:
  static constexpr Picoseconds kNone = Picoseconds::max();
  Picoseconds deadline_ = kNone;
  Picoseconds pending_ = kNone;
};

}  // namespace bx::sim
