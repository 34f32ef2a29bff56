// SPDX-License-Identifier: GPL-2.0-only
// ns-3 packets inside the model's frames: a rider holds the packet, which begins with its Ethernet header,
// from the sending device to the receiving one. Riders come from a pool that grows to the most that were ever
// under way at once.
#pragma once

#include <ns3/packet.h>
#include <ns3/ptr.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "sim/model/frame.h"

namespace bx::sim {

class PacketRiders;

class PacketRider final : public FrameRider {
 public:
  explicit PacketRider(PacketRiders& pool) noexcept : pool_(pool) {}
  void release() noexcept override;
  std::size_t write(std::span<std::byte> out, Ecn ecn) const override;

  ns3::Ptr<ns3::Packet> packet;  // null once the receiver has taken it

 private:
  friend class PacketRiders;
  PacketRiders& pool_;
  PacketRider* next_free_ = nullptr;
};

class PacketRiders {
 public:
  PacketRiders() = default;
  PacketRiders(const PacketRiders&) = delete;
  PacketRiders& operator=(const PacketRiders&) = delete;

  [[nodiscard]] PacketRider* make(ns3::Ptr<ns3::Packet> packet);

 private:
  friend class PacketRider;
  std::deque<PacketRider> riders_;  // which do not move
  PacketRider* free_ = nullptr;
};

// What the fabric must know of a packet: read from its first bytes. An IPv4 packet's ECN field, DSCP and
// flow; zeros for any other protocol.
struct PacketFields {
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::not_capable;
  std::uint16_t flow = 0;      // of protocol and ports: what ECMP hashes beside the addresses
  std::uint32_t ipv4_dst = 0;  // 0: not IPv4
};
inline constexpr std::size_t kEthernetHeaderBytes = 14;
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
// `packet_bytes` begin with the IP header.
[[nodiscard]] PacketFields read_fields(std::span<const std::byte> packet_bytes,
                                       std::uint16_t ether_type) noexcept;
// The same for a packet that begins with its Ethernet header.
[[nodiscard]] PacketFields read_frame_fields(const ns3::Packet& packet);

// Writes an ECN field into an IPv4 header, and its checksum anew unless that is 0 (ns-3's "not computed").
void set_ecn(std::span<std::byte> ipv4_header, Ecn ecn) noexcept;

}  // namespace bx::sim
