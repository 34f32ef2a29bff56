// SPDX-License-Identifier: BSD-3-Clause
// What a worker tells of itself: its counters as sums and by peer, lane and session (report.cc).
#pragma once

#include <string>

#include "libbx/engine/peer.h"
#include "libbx/engine/stats.h"

namespace bx::engine {

// What was counted with peers and sessions that are gone, so that no sum ever shrinks.
struct Departed {
  Stats stats;
  LogHistogram latency;
  std::array<Duration, kStallReasons> stalled{};

  void add(const Peer& peer, Instant now) noexcept;
};

// "host7:7000" of a peer that we opened, else the address it gave and the queue pair there:
// "10.0.0.7/qp0x11".
std::string name_of(const Peer& peer);
// "0x11"
std::string name_of(fabric::QpNum qp);

}  // namespace bx::engine
