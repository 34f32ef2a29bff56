// SPDX-License-Identifier: GPL-2.0-only
// The PFC watchdog: finds egress queues that a peer pauses without end, and takes them out of service until
// the peer has stopped. As SONiC's: a queue that is paused and has frames waiting, and has sent none for the
// detection time, is in a storm; it is restored when no pause has come for the restoration time. Looked at
// every poll interval, from the first pause on, and no longer once no queue of the port is paused: idle ports
// cost nothing.
//
// Not modelled: SONiC also drops what arrives at the stormed port in the same priority.
#pragma once

#include <cstdint>

#include "sim/model/units.h"

namespace bx::sim {

enum class WatchdogAction : std::uint8_t {
  off,
  drop,     // what waits and what comes for the queue, so that the pause does not spread
  forward,  // in spite of the pause
};

// Defaults: sonic-net/sonic-utilities pfcwd/main.py (there the poll interval grows with the number of ports).
struct WatchdogConfig {
  WatchdogAction action = WatchdogAction::off;
  Picoseconds detect = milliseconds{200};
  Picoseconds restore = milliseconds{200};
  Picoseconds poll = milliseconds{200};
};

enum class WatchdogVerdict : std::uint8_t { nothing, storm, restored };

// Of one egress queue.
class QueueWatchdog {
 public:
  struct Look {
    bool paused = false;
    bool waiting = false;               // it has frames
    std::uint64_t frames_sent = 0;      // since the start
    std::uint64_t pause_frames_rx = 0;  // likewise
  };
  [[nodiscard]] bool storm() const noexcept { return storm_; }
  // Begins to watch; the first poll comes one interval later.
  void arm(const Look& look) noexcept {
    seen_ = look;
    lasted_ = Picoseconds{0};
  }
  WatchdogVerdict poll(const WatchdogConfig& config, const Look& look) noexcept {
    const bool goes_on = storm_ ? look.pause_frames_rx == seen_.pause_frames_rx
                                : look.paused && look.waiting && look.frames_sent == seen_.frames_sent;
    lasted_ = goes_on ? lasted_ + config.poll : Picoseconds{0};
    seen_ = look;
    if (lasted_ < (storm_ ? config.restore : config.detect)) return WatchdogVerdict::nothing;
    storm_ = !storm_;
    lasted_ = Picoseconds{0};
    return storm_ ? WatchdogVerdict::storm : WatchdogVerdict::restored;
  }

 private:
  Look seen_{};
  Picoseconds lasted_{};  // the stall, or the quiet after it
  bool storm_ = false;
};

}  // namespace bx::sim
