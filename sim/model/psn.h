// SPDX-License-Identifier: GPL-2.0-only
// Packet sequence numbers. On the wire a PSN is 24 bits and wraps; inside a queue pair it is a position: 64
// bits, never wrapping, equal to the PSN modulo 2^24. Positions compare as plain integers, and only the edge
// of a queue pair converts.
#pragma once

#include <cstdint>

namespace bx::sim {

inline constexpr std::uint32_t kPsnMask = 0xffffff;
// A PSN within 2^23 behind the expected one is a duplicate, ahead of it a gap (IBA 1.4, 9.7.4.1), so no more
// than this may be outstanding.
inline constexpr std::uint64_t kPsnWindow = 1ULL << 23U;

constexpr std::uint32_t psn_of(std::uint64_t position) noexcept {
  return static_cast<std::uint32_t>(position) & kPsnMask;
}

// Where a connection that begins with `psn` begins: high enough that a position 2^23 back is not negative.
constexpr std::uint64_t first_position(std::uint32_t psn) noexcept {
  return (1ULL << 24U) | (psn & kPsnMask);
}

// The position nearest to `reference` that has this PSN.
constexpr std::uint64_t position_near(std::uint32_t psn, std::uint64_t reference) noexcept {
  const std::uint32_t difference = (psn - psn_of(reference)) & kPsnMask;
  // Sign extension from 24 bits.
  const std::int32_t step = static_cast<std::int32_t>(difference << 8U) >> 8;
  return reference + static_cast<std::uint64_t>(static_cast<std::int64_t>(step));
}

}  // namespace bx::sim
