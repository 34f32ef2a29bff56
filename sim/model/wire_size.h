// SPDX-License-Identifier: GPL-2.0-only
// What a RoCEv2 packet occupies on the wire, from its opcode and payload (IBA 1.4, 9.2 to 9.4, annex A17).
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/model/frame.h"
#include "sim/model/units.h"

namespace bx::sim {

inline constexpr std::uint32_t kRethBytes = 16;
inline constexpr std::uint32_t kImmDtBytes = 4;
inline constexpr std::uint32_t kIethBytes = 4;
inline constexpr std::uint32_t kAethBytes = 4;
inline constexpr std::uint32_t kAtomicEthBytes = 28;
inline constexpr std::uint32_t kAtomicAckEthBytes = 8;

// Extended headers behind the BTH.
constexpr std::uint32_t extended_header_bytes(BthOpcode opcode) noexcept {
  switch (opcode) {
    case BthOpcode::send_last_imm:
    case BthOpcode::send_only_imm:
    case BthOpcode::write_last_imm:
      return kImmDtBytes;
    case BthOpcode::send_last_inv:
    case BthOpcode::send_only_inv:
      return kIethBytes;
    case BthOpcode::write_first:
    case BthOpcode::write_only:
    case BthOpcode::read_request:
      return kRethBytes;
    case BthOpcode::write_only_imm:
      return kRethBytes + kImmDtBytes;
    case BthOpcode::read_response_first:
    case BthOpcode::read_response_last:
    case BthOpcode::read_response_only:
    case BthOpcode::acknowledge:
      return kAethBytes;
    case BthOpcode::atomic_acknowledge:
      return kAethBytes + kAtomicAckEthBytes;
    case BthOpcode::cmp_swap:
    case BthOpcode::fetch_add:
      return kAtomicEthBytes;
    case BthOpcode::cnp:
      return 16;  // reserved bytes (annex A17.9.3)
    case BthOpcode::send_first:
    case BthOpcode::send_middle:
    case BthOpcode::send_last:
    case BthOpcode::send_only:
    case BthOpcode::write_middle:
    case BthOpcode::write_last:
    case BthOpcode::read_response_middle:
      return 0;
  }
  return 0;
}

// The payload is padded to four bytes (pad count, 9.2.3), the frame to Ethernet's minimum.
constexpr std::uint32_t wire_bytes(BthOpcode opcode, std::uint32_t payload_bytes) noexcept {
  const std::uint32_t padded = (payload_bytes + 3U) & ~3U;
  return std::max(kMinimumWireBytes, kRoceOverheadBytes + extended_header_bytes(opcode) + padded);
}

// What an Ethernet frame around `packet_bytes` (an IP packet with its header) occupies: preamble 8, Ethernet
// 14, FCS 4, gap 12, and padding to Ethernet's minimum.
inline constexpr std::uint32_t kEthernetOverheadBytes = 38;
constexpr std::uint32_t ethernet_wire_bytes(std::uint32_t packet_bytes) noexcept {
  return std::max(kMinimumWireBytes, kEthernetOverheadBytes + packet_bytes);
}

}  // namespace bx::sim
