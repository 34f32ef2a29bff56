// SPDX-License-Identifier: GPL-2.0-only
// Private to the switch: one port with its queues, its pauses and their counters. About 2 KiB a port.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "sim/model/switch.h"

namespace bx::sim {

// Frame::ingress_port of the switch's own PFC frames, which take no buffer.
inline constexpr std::uint16_t kOwnFrame = UINT16_MAX;

// What a frame touches without being dropped or marked is in the first cache line.
struct alignas(64) Switch::Queue {
  FrameQueue frames;
  QueueCounters counters;
};

struct Switch::Side {
  Side(Switch& owner_switch, Engine& engine, FramePool& pool, std::uint16_t index, Rate rate)
      : port(engine, pool, owner_switch, index, rate),
        owner(owner_switch),
        refresh_interval(pfc_quanta_time(owner_switch.config_.pause_quanta, rate) / 2) {
    if (owner_switch.config_.watchdog.action != WatchdogAction::off)
      watchdogs = std::make_unique<Watchdogs>();
  }
  [[nodiscard]] QueueWatchdog::Look look(std::uint8_t priority) const noexcept {
    return {.paused = port.paused(priority),
            .waiting = !queues[priority].frames.empty(),
            .frames_sent = queues[priority].counters.frames,
            .pause_frames_rx = port.pause_frames_rx(priority)};
  }

  Port port;
  Switch& owner;
  // Egress.
  std::uint8_t waiting = 0;       // bit p: queues[p] is not empty
  std::uint8_t pfc_pending = 0;   // bit p: the peer is to hear whether p is paused
  std::uint8_t discarding = 0;    // bit p: the watchdog drops what comes for queues[p]
  std::uint8_t ignore_pause = 0;  // bit p: the watchdog sends in spite of the peer's pause
  Scheduler scheduler;
  std::array<Queue, kPriorities> queues{};
  using Watchdogs = std::array<QueueWatchdog, kPriorities>;
  std::unique_ptr<Watchdogs> watchdogs;  // null: off
  std::uint8_t watched = 0;              // bit p: on_watch looks at p; it will come while this is not 0
  // Ingress.
  std::uint8_t refresh_scheduled = 0;  // bit p: on_refresh will come
  std::uint8_t unheard = 0;            // bit p: in XOFF since a link fault that kept the peer from hearing it
  Picoseconds refresh_interval;
  std::array<Picoseconds, kPriorities> pause_sent{};
  std::array<IngressCounters, kPriorities> ingress{};
};

inline constexpr std::uint8_t priority_bit(std::uint8_t priority) noexcept {
  return static_cast<std::uint8_t>(1U << priority);
}

}  // namespace bx::sim
