// SPDX-License-Identifier: BSD-3-Clause
// The timers of one reactor, earliest first; of those of one instant, the one armed first. A timer carries
// its position, so arming, moving and cancelling need no search. For reactors only.
//
// Invariants: each timer's position.index is its place; no timer is earlier than its parent (i - 1) / 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libbx/fabric/reactor.h"

namespace bx::fabric {

class TimerHeap {
 public:
  // Grows, which allocates, only beyond `reserved` timers.
  explicit TimerHeap(std::size_t reserved) { timers_.reserve(reserved); }
  ~TimerHeap() {
    for (Timer* timer : timers_) timer->bind(nullptr, {});
  }
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;

  [[nodiscard]] bool empty() const noexcept { return timers_.empty(); }
  [[nodiscard]] Timer& first() const noexcept { return *timers_.front(); }
  // The order of the next timer to be armed: what is due and has a smaller one was armed before.
  [[nodiscard]] std::uint64_t next_order() const noexcept { return next_order_; }
  void add(Timer& timer, Reactor& reactor, Instant when) noexcept {
    timer.bind(&reactor, when);
    timer.position.order = next_order_++;
    timers_.push_back(nullptr);
    place(timers_.size() - 1, &timer);
    sift_up(timers_.size() - 1);
  }
  // It keeps its instant, and is no longer armed.
  void remove(Timer& timer) noexcept {
    Timer* const last = timers_.back();
    const std::size_t index = timer.position.index;
    timers_.pop_back();
    if (index != timers_.size()) {
      place(index, last);
      sift_up(index);
      sift_down(last->position.index);
    }
    timer.bind(nullptr, timer.when());
  }

 private:
  [[nodiscard]] static bool earlier(const Timer& a, const Timer& b) noexcept {
    return a.when() != b.when() ? a.when() < b.when() : a.position.order < b.position.order;
  }
  void place(std::size_t index, Timer* timer) noexcept {
    timers_[index] = timer;
    timer->position.index = static_cast<std::uint32_t>(index);
  }
  void sift_up(std::size_t index) noexcept {
    Timer* const timer = timers_[index];
    while (index > 0) {
      const std::size_t parent = (index - 1) / 2;
      if (!earlier(*timer, *timers_[parent])) break;
      place(index, timers_[parent]);
      index = parent;
    }
    place(index, timer);
  }
  void sift_down(std::size_t index) noexcept {
    Timer* const timer = timers_[index];
    for (;;) {
      std::size_t child = 2 * index + 1;
      if (child >= timers_.size()) break;
      if (child + 1 < timers_.size() && earlier(*timers_[child + 1], *timers_[child])) ++child;
      if (!earlier(*timers_[child], *timer)) break;
      place(index, timers_[child]);
      index = child;
    }
    place(index, timer);
  }

  std::vector<Timer*> timers_;
  std::uint64_t next_order_ = 0;
};

}  // namespace bx::fabric
