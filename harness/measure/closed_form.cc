// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/closed_form.h"

#include <algorithm>

#include "sim/model/units.h"

namespace bx::harness {
namespace {

std::uint64_t packet_bytes(std::uint64_t payload) noexcept {
  return std::max<std::uint64_t>(payload + sim::kRoceOverheadBytes, sim::kMinimumWireBytes);
}

std::uint64_t serialisation_ps(std::uint64_t rate_bps, std::uint64_t bytes) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(bytes) * 8U * 1'000'000'000'000ULL / rate_bps);
}

std::uint64_t sender_rate(const LinkModel& link) noexcept {
  return link.sender_rate_bps == 0 ? link.rate_bps : link.sender_rate_bps;
}

// Of all bytes, through the narrowest cut.
std::uint64_t crossing_ps(const LinkModel& link, std::uint64_t bytes) noexcept {
  return link.cut_bps == 0 ? 0 : serialisation_ps(link.cut_bps, bytes);
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
  const std::uint64_t at_receiver =
      serialisation_ps(sender_rate(link), first) + serialisation_ps(link.rate_bps, total);
  return std::max(at_receiver, crossing_ps(link, total)) + 2 * link.delay_ps;
}

std::uint64_t flow_bound_ps(const LinkModel& link, std::uint64_t answer) noexcept {
  const std::uint64_t bytes = wire_bytes(answer, link.mtu);
  const std::uint64_t last = packet_bytes(last_packet_payload(answer, link.mtu));
  const std::uint64_t slower = std::min(link.rate_bps, sender_rate(link));
  const std::uint64_t at_ends =
      serialisation_ps(slower, bytes) + serialisation_ps(std::max(link.rate_bps, sender_rate(link)), last);
  return std::max(at_ends, crossing_ps(link, bytes)) + 2 * link.delay_ps;
}

}  // namespace bx::harness
