// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/packet_rider.h"

#include <algorithm>
#include <array>

namespace bx::sim {
namespace {

constexpr std::size_t kIpv4Minimum = 20;

std::uint32_t u8(std::span<const std::byte> bytes, std::size_t at) noexcept {
  return std::to_integer<std::uint32_t>(bytes[at]);
}
std::uint32_t u16(std::span<const std::byte> bytes, std::size_t at) noexcept {
  return u8(bytes, at) << 8U | u8(bytes, at + 1);
}

}  // namespace

void PacketRider::release() noexcept {
  packet = nullptr;
  next_free_ = pool_.free_;
  pool_.free_ = this;
}

std::size_t PacketRider::write(std::span<std::byte> out, Ecn ecn) const {
  const std::uint32_t size =
      packet->CopyData(reinterpret_cast<std::uint8_t*>(out.data()), static_cast<std::uint32_t>(out.size()));
  const std::span<std::byte> bytes = out.first(size);
  if (ecn == Ecn::congestion_experienced && size >= kEthernetHeaderBytes + kIpv4Minimum &&
      u16(bytes, 12) == kEtherTypeIpv4) {
    set_ecn(bytes.subspan(kEthernetHeaderBytes), ecn);
  }
  return size;
}

PacketRider* PacketRiders::make(ns3::Ptr<ns3::Packet> packet) {
  if (free_ == nullptr) free_ = &riders_.emplace_back(*this);
  PacketRider* rider = free_;
  free_ = rider->next_free_;
  rider->next_free_ = nullptr;
  rider->packet = std::move(packet);
  return rider;
}

PacketFields read_fields(std::span<const std::byte> packet_bytes, std::uint16_t ether_type) noexcept {
  PacketFields fields;
  if (ether_type != kEtherTypeIpv4 || packet_bytes.size() < kIpv4Minimum) return fields;
  const std::uint32_t tos = u8(packet_bytes, 1);
  fields.dscp = static_cast<std::uint8_t>(tos >> 2U);
  // ECT(0) and ECT(1) are one here: switches treat them alike (RFC 3168, 5).
  fields.ecn =
      (tos & 3U) == 3 ? Ecn::congestion_experienced : ((tos & 3U) != 0 ? Ecn::capable : Ecn::not_capable);
  fields.ipv4_dst = u16(packet_bytes, 16) << 16U | u16(packet_bytes, 18);
  const std::uint32_t protocol = u8(packet_bytes, 9);
  const std::size_t ports = (u8(packet_bytes, 0) & 0xfU) * 4U;
  const bool fragment = (u16(packet_bytes, 6) & 0x3fffU) != 0;  // only the first one has ports
  const bool has_ports = (protocol == 6 || protocol == 17) && !fragment && packet_bytes.size() >= ports + 4;
  fields.flow = static_cast<std::uint16_t>(
      has_ports ? u16(packet_bytes, ports) * 31U + u16(packet_bytes, ports + 2) + protocol : protocol);
  return fields;
}

PacketFields read_frame_fields(const ns3::Packet& packet) {
  std::array<std::byte, kEthernetHeaderBytes + 64> head;  // the longest IPv4 header, and ports
  const std::uint32_t size = packet.CopyData(reinterpret_cast<std::uint8_t*>(head.data()), head.size());
  const std::span<const std::byte> bytes(head.data(), size);
  if (size < kEthernetHeaderBytes) return {};
  return read_fields(bytes.subspan(kEthernetHeaderBytes), static_cast<std::uint16_t>(u16(bytes, 12)));
}

void set_ecn(std::span<std::byte> ipv4_header, Ecn ecn) noexcept {
  const std::uint32_t before = u16(ipv4_header, 0);
  ipv4_header[1] = (ipv4_header[1] & std::byte{0xfc}) | static_cast<std::byte>(ecn);
  const std::uint32_t after = u16(ipv4_header, 0);
  const std::uint32_t checksum = u16(ipv4_header, 10);
  if (checksum == 0) return;
  // RFC 1624: HC' = ~(~HC + ~m + m').
  std::uint32_t sum = (~checksum & 0xffffU) + (~before & 0xffffU) + after;
  while ((sum >> 16U) != 0) sum = (sum & 0xffffU) + (sum >> 16U);
  const std::uint32_t updated = ~sum & 0xffffU;
  ipv4_header[10] = static_cast<std::byte>(updated >> 8U);
  ipv4_header[11] = static_cast<std::byte>(updated);
}

}  // namespace bx::sim
