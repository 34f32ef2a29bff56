// SPDX-License-Identifier: BSD-3-Clause
// A worker's clock and run loop. On a real host it spins and sleeps; in a virtual-time provider it is one
// event in the simulation. The library's work happens in turns: the reactor calls Turn::turn() after a
// wake-up, a timer or when the last turn asked for another.
//
// How a reactor waits between turns is its own matter (WaitMode, chosen in the provider's config); nothing
// above the boundary knows. What each mode must do so that no completion is slept through:
//
//   polled    takes a turn again and again and never sleeps; arm() and wake-ups change nothing but to cost
//   little. Timers
//             are looked at between turns.
//   event     a turn that returns more == false has armed the completion queue and was told `armed`; only
//   then may the
//             reactor sleep, until a wake-up or the earliest timer. The race is closed by that order, poll ->
//             arm -> poll again: what arrives between the last poll and arm() makes arm() say `pending`, and
//             the turn asks for another; what arrives after it raises the wake-up, which must not be lost if
//             it comes before the sleep begins: the reactor looks at a mark that wake() leaves (an eventfd
//             does) as it goes to sleep. On verbs: ibv_req_notify_cq, then poll once more, then sleep on the
//             channel's descriptor; arm() does the first two. Each sleep that a channel event ended takes
//             that event (ibv_get_cq_event) before the next arm.
//   adaptive  polled for a while after the last turn that did something (Work says), then event. Going to
//   sleep is the
//             same sequence, with one more turn in between that does the arming.
//
// A turn arms at its end even when the reactor polls, so a reactor may change its mind after any turn.
#pragma once

#include <cstdint>

#include "libbx/base/time.h"
#include "libbx/fabric/device.h"

namespace bx::fabric {

// What one turn did, in countable units, so that a virtual-time host can charge for it. Real hosts ignore it.
struct Work {
  std::uint32_t completions = 0;   // polled
  std::uint32_t polls_empty = 0;   // polls that found nothing
  std::uint32_t sends_posted = 0;  // work requests
  std::uint32_t doorbells = 0;     // post_send and post_recv calls
  std::uint32_t receives_posted = 0;
  std::uint32_t handlers = 0;      // application code resumed: request handlers and coroutines
  std::uint64_t bytes_copied = 0;  // by the CPU
};

enum class WaitMode : std::uint8_t {
  polled,    // spins: quick to notice, and a whole core on a real host
  event,     // sleeps until an interrupt
  adaptive,  // spins for a while after the last work, then sleeps
};

struct TurnResult {
  bool more = false;  // something is left to do: take another turn without waiting for a wake-up
  Work work{};
};

class Turn {
 public:
  virtual TurnResult turn(Instant now) noexcept = 0;

 protected:
  ~Turn() = default;
};

// A one-shot timer, owned by whoever embeds it. Cancelled when destroyed. A reactor keeps the position in its
// heap in the timer, so arming, moving and cancelling need no search.
class Reactor;
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  virtual ~Timer();
  [[nodiscard]] bool armed() const noexcept { return reactor_ != nullptr; }
  [[nodiscard]] Instant when() const noexcept { return when_; }

  // Called by the reactor, with the timer disarmed, just before the turn of the same instant.
  virtual void on_timer(Instant now) noexcept = 0;

  // For reactors only.
  struct Position {
    std::uint64_t order = 0;  // ties are broken by the order of arming
    std::uint32_t index = 0;  // in the reactor's heap
  };
  Position position{};
  void bind(Reactor* reactor, Instant when) noexcept {
    reactor_ = reactor;
    when_ = when;
  }

 private:
  Reactor* reactor_ = nullptr;
  Instant when_{};
};

enum class RunEnd : std::uint8_t {
  stopped,  // somebody called stop()
  limit,    // the instant given to run() is reached
  idle,     // virtual time only: nothing is left that could ever happen
};

class Reactor {
 public:
  virtual ~Reactor() = default;
  // Constant within one turn.
  [[nodiscard]] virtual Instant now() const noexcept = 0;
  // The one user of the turns; null detaches. Attaching asks for a first turn.
  virtual void attach(Turn* turn) noexcept = 0;
  // Asks for a turn. Safe to call from any thread on a provider that has threads, and from inside a turn.
  virtual Waker& waker() noexcept = 0;
  // Arms `timer` for `when`, moving it if it was armed; an instant in the past means the next turn.
  virtual void arm(Timer& timer, Instant when) noexcept = 0;
  virtual void cancel(Timer& timer) noexcept = 0;
  // Runs the loop. In a virtual-time fabric this runs every host of the fabric, for they share one clock.
  virtual RunEnd run(Instant limit) = 0;
  // Ends run() after the current turn.
  virtual void stop() noexcept = 0;
  // CPU time that turns have been charged so far; on real hosts the thread's CPU time.
  [[nodiscard]] virtual Duration cpu_time() const noexcept = 0;
};

inline Timer::~Timer() {
  if (reactor_ != nullptr) reactor_->cancel(*this);
}

}  // namespace bx::fabric
