// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_memory.h"

namespace bx::sim::rc_memory {

bool take_slowly(RcEnvironment& environment, Frame& frame, std::span<const Segment> segments,
                 std::uint64_t offset, std::uint32_t bytes, Carried carried) {
  if (environment.costs() != nullptr) environment.costs()->gathers(segments, offset, bytes);
  if (carried == Carried::no) {
    return covered(environment.memory(), segments, offset, bytes, MemoryAccess::local_read);
  }
  frame.payload = environment.frames().make_payload();
  return gather(environment.memory(), segments, offset, {frame.payload->bytes.data(), bytes});
}

bool place_slowly(RcEnvironment& environment, const Frame& frame, std::span<const Segment> segments,
                  std::uint64_t offset) {
  const std::uint32_t bytes = frame.payload_bytes;
  if (!covered(environment.memory(), segments, offset, bytes, MemoryAccess::local_write)) return false;
  NicCosts* costs = environment.costs();
  const std::byte* data = frame.payload == nullptr ? nullptr : frame.payload->bytes.data();
  const bool late = costs != nullptr && costs->config().late_dma;
  if (data != nullptr && !late) {
    if (!scatter(environment.memory(), segments, offset, {data, bytes})) return false;
  }
  if (costs != nullptr) costs->scatters(segments, offset, bytes, late ? data : nullptr);
  return true;
}

void write_slowly(RcEnvironment& environment, const Frame& frame, std::uint32_t rkey, std::uint64_t addr) {
  NicCosts* costs = environment.costs();
  const std::byte* data = frame.payload == nullptr ? nullptr : frame.payload->bytes.data();
  const bool late = costs != nullptr && costs->config().late_dma;
  if (data != nullptr && !late) std::memcpy(memory_at(addr), data, frame.payload_bytes);
  if (costs != nullptr) costs->writes(rkey, addr, frame.payload_bytes, late ? data : nullptr);
}

void read_slowly(RcEnvironment& environment, Frame& frame, const RemoteBytes& from, Carried carried) {
  if (environment.costs() != nullptr) environment.costs()->gathers(from.key, from.addr, from.bytes);
  if (carried == Carried::no) return;
  frame.payload = environment.frames().make_payload();
  std::memcpy(frame.payload->bytes.data(), memory_at(from.addr), from.bytes);
}

}  // namespace bx::sim::rc_memory
