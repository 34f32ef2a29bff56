// SPDX-License-Identifier: BSD-3-Clause
// Counters of the parts of a worker: of a peer and its lane, and of a session. What is counted here is not
// counted in the worker's own (stats.h) as well: whoever reports adds up, so counting apart costs a message
// nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "libbx/base/log_histogram.h"
#include "libbx/engine/stats.h"

namespace bx::engine {

// X(member) of those in BX_STATS that are counted with the peer they concern.
#define BX_PEER_STATS(X) \
  X(requests_served)     \
  X(messages_sent)       \
  X(messages_received)   \
  X(messages_offered)    \
  X(bytes_sent)          \
  X(bytes_received)      \
  X(stall_credit)        \
  X(stall_slot)          \
  X(stall_lane)          \
  X(stall_window)

struct PeerStats {
#define BX_PEER_STAT_MEMBER(member) std::uint64_t member = 0;
  BX_PEER_STATS(BX_PEER_STAT_MEMBER)
#undef BX_PEER_STAT_MEMBER
};

// Sessions of a peer that are counted apart; those beyond share the last one's place.
inline constexpr std::uint32_t kSessionsCountedMax = 256;

// The caller's end of a session. Lives until its peer is gone, as its calls do.
struct SessionStats {
  std::uint32_t session = 0;
  std::uint64_t calls_started = 0;
  std::uint64_t calls_failed = 0;
  std::uint64_t bytes_out = 0;  // of requests, as given to start_call
  std::uint64_t bytes_in = 0;   // of answers
  LogHistogram latency;  // of the calls that completed, from start_call to the turn their answer is there in
};

// What the first thing that waits in a peer's queue lacks.
enum class StallReason : std::uint8_t {
  none,
  window,
  credit,
  slot,  // on any lane it may go by
  lane,  // a slot of its session's lane, while another lane of the peer has some
};
inline constexpr std::size_t kStallReasons = 5;

constexpr const char* name_of(StallReason reason) noexcept {
  constexpr std::array<const char*, kStallReasons> kNames = {"none", "window", "credit", "slot", "lane"};
  return kNames[static_cast<std::size_t>(reason)];
}

// Time that something waited in a peer's queue, by what it lacked: from the first turn in which it could not
// go until something could. Only what waits pays for it.
class StallClock {
 public:
  void enter(StallReason reason, Instant now) noexcept {
    if (reason_ == reason) return;
    leave(now);
    reason_ = reason;
    since_ = now;
  }
  void leave(Instant now) noexcept {
    if (reason_ == StallReason::none) return;
    time_[static_cast<std::size_t>(reason_)] += now - since_;
    reason_ = StallReason::none;
  }
  [[nodiscard]] StallReason reason() const noexcept { return reason_; }
  [[nodiscard]] Instant since() const noexcept { return since_; }
  // Up to `now`, what is still going on included.
  [[nodiscard]] Duration time(StallReason reason, Instant now) const noexcept {
    const Duration past = time_[static_cast<std::size_t>(reason)];
    return reason == reason_ ? past + (now - since_) : past;
  }

 private:
  StallReason reason_ = StallReason::none;
  Instant since_{};
  std::array<Duration, kStallReasons> time_{};
};

}  // namespace bx::engine
