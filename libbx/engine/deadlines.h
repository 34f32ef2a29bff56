// SPDX-License-Identifier: BSD-3-Clause
// The deadlines of calls that name none of their own (calls.deadline). They are all the same time after the
// start of the call, so they fall due in the order of starting, and one timer stands for all: to start or to
// complete such a call costs a link in a list. The timer may be early, armed for a call that has completed
// since; then it moves to the oldest that is left.
#pragma once

#include "libbx/engine/call.h"
#include "libbx/fabric/reactor.h"

namespace bx::engine {

class Deadlines final : private fabric::Timer {
 public:
  Deadlines(fabric::Reactor& reactor, Duration after) noexcept : reactor_(reactor), after_(after) {}

  void add(Call& call, Instant now) noexcept {
    call.started = now;
    calls_.push_back(call);
    if (!armed()) reactor_.arm(*this, now + after_);
  }
  // Of a call that names its own.
  void add_own(Call& call, Instant due, Instant now) noexcept {
    call.started = now;
    own_.push_back(call);
    reactor_.arm(call, due);
  }
  // Calls fn(call) for every call, in the order of starting but those with deadlines of their own last; fn
  // may end the one it was given.
  template <class Fn>
  void for_each(Fn&& fn) {
    for (IntrusiveList<Call, InProgress>* list : {&calls_, &own_}) {
      for (Call* call = list->front(); call != nullptr;) {
        Call& current = *call;
        call = list->next(current);
        fn(current);
      }
    }
  }
  // At the end of a turn: no timer outlives the last call, or a reactor would stay awake for it.
  void rest() noexcept {
    if (calls_.empty() && armed()) reactor_.cancel(*this);
  }

 private:
  void on_timer(Instant now) noexcept override {
    while (Call* call = calls_.front()) {
      const Instant due = call->started + after_;
      if (due > now) return reactor_.arm(*this, due);
      call->on_timer(now);  // takes it off the list
    }
  }

  fabric::Reactor& reactor_;
  Duration after_;
  IntrusiveList<Call, InProgress> calls_;
  IntrusiveList<Call, InProgress> own_;
};

}  // namespace bx::engine
