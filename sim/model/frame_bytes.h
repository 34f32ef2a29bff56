// SPDX-License-Identifier: GPL-2.0-only
// A frame as bytes, for captures: Ethernet, then for RoCEv2 IPv4, UDP 4791, BTH, extended headers, payload
// with its padding, and ICRC; for PFC the MAC control frame of IEEE 802.1Q-2018, 36.1. Without preamble and
// FCS, as captures are; with Ethernet's padding to 60 bytes. A frame of kind `ip` is as its rider writes it.
//
// What the model does not carry is written as constants: TTL 64 at every hop, IP identification 0 (DF is
// set), partition key 0xffff, UDP checksum 0 (RoCEv2 allows it), the same MAC addresses on every link. A
// payload that is not there (lengths-only runs) is written as zeros.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/model/frame.h"
#include "sim/model/units.h"

namespace bx::sim {

using MacAddress = std::array<std::uint8_t, 6>;

// Locally administered: 02:00:00:00 and the host's number.
[[nodiscard]] constexpr MacAddress host_mac(std::uint16_t host) noexcept {
  return {2, 0, 0, 0, static_cast<std::uint8_t>(host >> 8U), static_cast<std::uint8_t>(host)};
}
// 02:01, the switch's number and the port's.
[[nodiscard]] constexpr MacAddress switch_mac(std::uint16_t fabric_switch, std::uint16_t port) noexcept {
  return {2,
          1,
          static_cast<std::uint8_t>(fabric_switch >> 8U),
          static_cast<std::uint8_t>(fabric_switch),
          static_cast<std::uint8_t>(port >> 8U),
          static_cast<std::uint8_t>(port)};
}
// 10.0.0.0 + host + 1.
[[nodiscard]] constexpr std::uint32_t host_ipv4(std::uint16_t host) noexcept {
  return (10U << 24U) + host + 1U;
}

inline constexpr std::uint32_t kUncapturedBytes = 8 + 4 + 12;  // preamble, FCS, gap
inline constexpr std::size_t kCapturedBytesMax = kFrameBytesMax - kUncapturedBytes;
inline constexpr std::uint16_t kRoceUdpPort = 4791;

// Returns the number of bytes written, at most kCapturedBytesMax. `pfc_source` is who sends a PFC frame.
[[nodiscard]] std::size_t write_frame(const Frame& frame, const MacAddress& pfc_source,
                                      std::span<std::byte, kCapturedBytesMax> out) noexcept;

// The invariant CRC of annex A17.3.3 over a RoCEv2 packet, from the first byte of its IPv4 header to its last
// byte before the ICRC: CRC-32 as Ethernet's, with fields that may change on the way taken as ones (type of
// service, TTL, both checksums, the BTH's byte of FECN, BECN and reserved bits), and 8 bytes of ones in
// front. It goes on the wire with its low byte first.
[[nodiscard]] std::uint32_t icrc_of(std::span<const std::byte> ip_packet) noexcept;

}  // namespace bx::sim
