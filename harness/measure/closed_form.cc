// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/closed_form.h"

#include <algorithm>

#include "sim/model/units.h"

namespace bx::harness {
namespace {

std::uint64_t packet_bytes(std::uint64_t payload) noexcept {
  return std::max<std::uint64_t>(payload + sim::kRoceOverheadBytes, sim::kMinimumWireBytes);
}

std::uint64_t serialisation_ps(const LinkModel& link, std::uint64_t bytes) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(bytes) * 8U * 1'000'000'000'000ULL / link.rate_bps);
}

std::uint64_t last_packet_payload(std::uint64_t payload, std::uint64_t mtu) noexcept {
  return payload == 0 ? 0 : (payload - 1) % mtu + 1;
}

}  // namespace

std::uint64_t wire_bytes(std::uint64_t payload, std::uint64_t mtu) noexcept {
  if (payload == 0) return packet_bytes(0);
  return (payload - 1) / mtu * packet_bytes(mtu) + packet_bytes(last_packet_payload(payload, mtu));
}

std::uint64_t incast_bound_ps(const LinkModel& link, std::span<const std::uint64_t> answers) noexcept {
  std::uint64_t total = 0;
  std::uint64_t first = packet_bytes(link.mtu);  // the shortest first packet: any answer may be the first
  for (const std::uint64_t answer : answers) {
    total += wire_bytes(answer, link.mtu);
    first = std::min(first, packet_bytes(std::min(answer, link.mtu)));
  }
  return serialisation_ps(link, first) + serialisation_ps(link, total) + 2 * link.delay_ps;
}

std::uint64_t flow_bound_ps(const LinkModel& link, std::uint64_t answer) noexcept {
  return serialisation_ps(link, wire_bytes(answer, link.mtu)) +
         serialisation_ps(link, packet_bytes(last_packet_payload(answer, link.mtu))) + 2 * link.delay_ps;
}

}  // namespace bx::harness
