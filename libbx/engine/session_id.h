// SPDX-License-Identifier: BSD-3-Clause
// What a session's id on the wire says. Its opener numbers the sessions of a peer from 1; the id carries the
// session's weight besides, so that the end which answers shares its lanes by the same weights and needs
// neither a message nor a table for them. Both ends find a session's lane from its number.
//
//   bits 31..28  weight, as its logarithm to base 2
//   bits 27..0   number
//
// A peer may claim any weight: it shares with nobody but its own sessions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "libbx/core/deficit_round_robin.h"

namespace bx::engine {

inline constexpr std::uint32_t kSessionNumberBits = 28;
inline constexpr std::uint32_t kSessionNumberMask = (1U << kSessionNumberBits) - 1;

constexpr std::uint32_t weight_of_session(std::uint32_t id) noexcept {
  return std::min(1U << (id >> kSessionNumberBits), core::Flow::kWeightMax);
}

// The weight is rounded down to a power of two, 1 to core::Flow::kWeightMax.
constexpr std::uint32_t with_weight(std::uint32_t id, std::uint32_t weight) noexcept {
  const std::uint32_t most = std::clamp(weight, 1U, core::Flow::kWeightMax);
  return (static_cast<std::uint32_t>(std::bit_width(most)) - 1) << kSessionNumberBits |
         (id & kSessionNumberMask);
}

// Which of `count` lanes, or queues, is the session's.
constexpr std::uint32_t share_of_session(std::uint32_t id, std::uint32_t count) noexcept {
  return ((id & kSessionNumberMask) - 1) % count;
}

}  // namespace bx::engine
