// SPDX-License-Identifier: GPL-2.0-only
// What the two ends of `bx perf verbs` say to each other over a stream: fixed-size messages of little-endian
// words. First each says where its queue pair and its memory are, then the client announces each point and
// the server says that it is ready.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "harness/perf/points.h"
#include "libbx/fabric/types.h"

namespace bx::harness {

struct RawMessage {
  enum class Kind : std::uint8_t { hello, point, ready, finish };
  Kind kind = Kind::hello;
  PerfCase which = PerfCase::send_latency;  // of a point
  std::uint32_t size = 0;                   // of a point
  fabric::QpAddress address{};              // of a hello, as the rest
  std::uint64_t memory = 0;
  std::uint32_t rkey = 0;
  std::uint32_t mtu_max = 0;
  std::uint32_t rd_atomic_max = 0;
};

inline constexpr std::size_t kRawMessageBytes = 64;
using RawBytes = std::array<std::byte, kRawMessageBytes>;

RawBytes encode(const RawMessage& message);
// Nothing if the bytes are of something else, or a value is out of its range.
std::optional<RawMessage> decode(std::span<const std::byte, kRawMessageBytes> bytes);

}  // namespace bx::harness
