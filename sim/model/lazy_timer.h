// SPDX-License-Identifier: GPL-2.0-only
// A deadline over an event queue that cannot forget: at most one event is pending, moving the deadline later
// costs nothing, and the event re-posts itself for what is left. The deadline may move later or be disarmed,
// but must not move before the pending event; a timer of constant duration never does.
#pragma once

#include "libbx/base/check.h"
#include "sim/model/units.h"

namespace bx::sim {

class LazyTimer {
 public:
  [[nodiscard]] bool armed() const noexcept { return deadline_ != kNone; }
  // `post(when)` must bring the event to expired() at `when`.
  template <class Post>
  void arm(Picoseconds deadline, Post post) {
    deadline_ = deadline;
    if (pending_ == kNone) {
      pending_ = deadline;
      post(deadline);
    }
    BX_CHECK(pending_ <= deadline, "a lazy timer moved before its pending event");
  }
  void disarm() noexcept { deadline_ = kNone; }
  // The pending event is here. True, and disarmed, if the deadline is too.
  template <class Post>
  [[nodiscard]] bool expired(Picoseconds now, Post post) {
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
