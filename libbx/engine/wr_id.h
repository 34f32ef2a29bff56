// SPDX-License-Identifier: BSD-3-Clause
// What a work request's id says when it comes back: whose it is, and which.
//   bits 63..62 kind, 61..56 lane of the peer, 55..32 index of the peer (of a send; 0 of a receive),
//   31..0 sequence number or slot
#pragma once

#include <cstdint>

#include "libbx/fabric/types.h"

namespace bx::engine {

enum class WrKind : std::uint8_t { send = 1, receive = 2 };

struct WrTag {
  WrKind kind = WrKind::send;
  std::uint32_t peer = 0;    // of a send: index below 2^24
  std::uint32_t number = 0;  // of a send: its sequence number on the lane; of a receive: its slot
  std::uint32_t lane = 0;    // of a send: which of the peer's, below 2^6

  friend bool operator==(const WrTag&, const WrTag&) = default;
};

constexpr fabric::WrId encode(const WrTag& tag) noexcept {
  return static_cast<fabric::WrId>((static_cast<std::uint64_t>(tag.kind) << 62U) |
                                   (static_cast<std::uint64_t>(tag.lane & 0x3fU) << 56U) |
                                   (static_cast<std::uint64_t>(tag.peer & 0xffffffU) << 32U) | tag.number);
}

constexpr WrTag decode(fabric::WrId id) noexcept {
  const auto raw = static_cast<std::uint64_t>(id);
  return {static_cast<WrKind>(raw >> 62U), static_cast<std::uint32_t>(raw >> 32U) & 0xffffffU,
          static_cast<std::uint32_t>(raw), static_cast<std::uint32_t>(raw >> 56U) & 0x3fU};
}

}  // namespace bx::engine
