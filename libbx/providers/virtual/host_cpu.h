// SPDX-License-Identifier: BSD-3-Clause
// What software costs on a virtual-time host. Without it the library would run in zero time: CPU use could
// not be reported, and a comparison with kernel TCP would mean nothing. One HostCpu is one core, that of one
// worker.
//
// Invariants: busy time only grows; fractions of a nanosecond are carried, so that a million small charges
// add up exactly.
#pragma once

#include <cstdint>

#include "libbx/base/time.h"
#include "libbx/fabric/reactor.h"

namespace bx::virtual_time {

// How the worker waits when it has nothing to do. In virtual time a mode is nothing but what a wake-up costs
// and how late it is noticed: no one spins, and spinning is not charged as CPU time.
using fabric::WaitMode;

// Defaults stand for one core of a server at about 3 GHz. "Assumed" means: the order of magnitude that the
// literature gives, until `bx perf` has measured a machine and written a parameter file.
struct HostCpuCosts {
  Duration turn{20};              // assumed: the loop around a turn, all in cache
  Duration completion{25};        // assumed: one CQE read, decoded and routed, about 75 cycles
  Duration empty_poll{10};        // assumed: a poll that finds the owner bit unchanged, in cache
  Duration send{30};              // assumed: building one WQE, inline copy excluded
  Duration doorbell{60};          // assumed: a fence and one write-combined MMIO store
  Duration receive{15};           // assumed: one receive WQE
  Duration handler{80};           // assumed: resuming a coroutine with cold state, one or two cache misses
  std::int64_t copy_ps_byte{80};  // assumed: memcpy out of cache at 12.5 GB/s
  Duration wake_polled{50};       // assumed: half an iteration of the spin loop and the CQE's cache miss
  // Assumed: interrupt delivery, wake-up of a sleeping thread and return from epoll_wait; several
  // microseconds with an idle core in a shallow C-state.
  Duration wake_event{4000};
  Duration interrupt{1500};  // assumed: of wake_event, what is CPU time: interrupt handler and context switch
  Duration spin{50'000};     // assumed: how long an adaptive worker spins before it sleeps, a few wake_event
  // Assumed: kernel TCP with 1460-byte segments merged by the NIC's offloads; socket call and protocol work a
  // segment, and one copy between kernel and user a byte.
  Duration tcp_segment{400};
  std::int64_t tcp_ps_byte{160};
  std::uint32_t tcp_segment_bytes = 1460;  // Ethernet MTU 1500 less 40 bytes of IPv4 and TCP headers
};

class HostCpu {
 public:
  explicit HostCpu(const HostCpuCosts& costs = {}, WaitMode mode = WaitMode::polled) noexcept;

  [[nodiscard]] const HostCpuCosts& costs() const noexcept { return costs_; }
  [[nodiscard]] WaitMode mode() const noexcept { return mode_; }

  // Occupies the CPU from max(now, free_at()) for what one turn did; returns when it is free again.
  Instant charge_turn(Instant now, const fabric::Work& work) noexcept;
  // The same for `bytes` through a kernel TCP socket, one direction.
  Instant charge_tcp(Instant now, std::uint64_t bytes) noexcept;
  // The CPU time of a wake-up out of sleep; nothing while it spins.
  Instant charge_wake(Instant now) noexcept;

  // From an event at `now` that wakes the idle worker to the start of its turn.
  [[nodiscard]] Duration wake_latency(Instant now) const noexcept;
  [[nodiscard]] Instant free_at() const noexcept { return free_at_; }
  [[nodiscard]] Duration busy_time() const noexcept { return busy_; }
  // CPU time by what it was spent on, so that a result can say where it went.
  struct Breakdown {
    Duration turns{};
    Duration tcp{};
    Duration wakes{};
  };
  [[nodiscard]] const Breakdown& breakdown() const noexcept { return breakdown_; }

 private:
  // Whether a worker that became idle at free_at() still spins at `now`.
  [[nodiscard]] bool spins(Instant now) const noexcept;
  Instant charge(Instant now, std::int64_t picoseconds, Duration& account) noexcept;

  HostCpuCosts costs_;
  WaitMode mode_;
  Instant free_at_{};
  Duration busy_{};
  std::int64_t carry_ps_ = 0;  // below one nanosecond
  Breakdown breakdown_{};
};

}  // namespace bx::virtual_time
