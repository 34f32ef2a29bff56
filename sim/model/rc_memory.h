// SPDX-License-Identifier: GPL-2.0-only
// How the two halves of a queue pair touch the host's memory: by the table of keys, at what it costs
// (nic_costs.h), and in lengths-only runs not at all.
//
// Lengths only ("scale mode"): a packet that is not carried has its length and no bytes. Keys and bounds are
// checked all the same, so every packet and completion is the same as with bytes, and no memory is read or
// written. Carried are the packets that begin within the first `payload_kept` bytes of their message:
// software finds its headers there. Atomics are always carried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "sim/model/memory_table.h"
#include "sim/model/nic_costs.h"
#include "sim/model/rc_environment.h"

namespace bx::sim {

enum class Carried : std::uint8_t { no, yes };

// Of a packet that begins `offset` bytes into its message.
inline Carried carried(const RcEnvironment& environment, std::uint64_t offset) noexcept {
  return offset < environment.payload_kept() ? Carried::yes : Carried::no;
}

// A range that a key has been checked to cover.
struct RemoteBytes {
  std::uint32_t key = 0;
  std::uint64_t addr = 0;
  std::uint32_t bytes = 0;
};

namespace rc_memory {
// The ways that are not the usual one.
bool take_slowly(RcEnvironment& environment, Frame& frame, std::span<const Segment> segments,
                 std::uint64_t offset, std::uint32_t bytes, Carried carried);
bool place_slowly(RcEnvironment& environment, const Frame& frame, std::span<const Segment> segments,
                  std::uint64_t offset);
void write_slowly(RcEnvironment& environment, const Frame& frame, std::uint32_t rkey, std::uint64_t addr);
void read_slowly(RcEnvironment& environment, Frame& frame, const RemoteBytes& from, Carried carried);
}  // namespace rc_memory

// Gives `frame` its payload: `bytes` > 0 at `offset` of the segments. False on a bad key.
inline bool take_payload(RcEnvironment& environment, Frame& frame, std::span<const Segment> segments,
                         std::uint64_t offset, std::uint32_t bytes, Carried carried) {
  if (environment.costs() != nullptr || carried == Carried::no) {
    return rc_memory::take_slowly(environment, frame, segments, offset, bytes, carried);
  }
  frame.payload = environment.frames().make_payload();
  if (segments.size() == 1 && offset + bytes <= segments[0].length) {
    const Segment& from = segments[0];
    if (!environment.memory().covers(from.key, from.addr + offset, bytes, MemoryAccess::local_read))
      return false;
    std::memcpy(frame.payload->bytes.data(), memory_at(from.addr + offset), bytes);
    return true;
  }
  return gather(environment.memory(), segments, offset, {frame.payload->bytes.data(), bytes});
}
// Puts the payload of `frame`, not empty, at `offset` of the segments. False on a bad key.
inline bool place_payload(RcEnvironment& environment, const Frame& frame, std::span<const Segment> segments,
                          std::uint64_t offset) {
  if (environment.costs() != nullptr || frame.payload == nullptr) {
    return rc_memory::place_slowly(environment, frame, segments, offset);
  }
  return scatter(environment.memory(), segments, offset, {frame.payload->bytes.data(), frame.payload_bytes});
}
// Puts the payload of `frame` at an address that `rkey` covers: that has been checked.
inline void write_payload(RcEnvironment& environment, const Frame& frame, std::uint32_t rkey,
                          std::uint64_t addr) {
  if (environment.costs() != nullptr || frame.payload == nullptr) {
    return rc_memory::write_slowly(environment, frame, rkey, addr);
  }
  std::memcpy(memory_at(addr), frame.payload->bytes.data(), frame.payload_bytes);
}
// Gives `frame` its payload, not empty.
inline void read_payload(RcEnvironment& environment, Frame& frame, const RemoteBytes& from, Carried carried) {
  if (environment.costs() != nullptr || carried == Carried::no) {
    return rc_memory::read_slowly(environment, frame, from, carried);
  }
  frame.payload = environment.frames().make_payload();
  std::memcpy(frame.payload->bytes.data(), memory_at(from.addr), from.bytes);
}
// Before memory is touched without these: what is on its way there comes first.
inline void settle_writes(RcEnvironment& environment) {
  if (environment.costs() != nullptr) environment.costs()->land_writes();
}

}  // namespace bx::sim
