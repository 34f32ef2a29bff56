// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/port_headroom.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "sim/provider/network_plan.h"

namespace bx::sim {
namespace {

// The first lossless class; all keep the same.
std::optional<std::size_t> lossless_class(const BufferConfig& buffer) noexcept {
  for (std::size_t p = 0; p < buffer.classes.size(); ++p) {
    if (buffer.classes[p].lossless) return p;
  }
  return std::nullopt;
}

std::uint64_t kept_by(const BufferConfig& buffer, std::size_t priority, std::uint16_t port) {
  return buffer.port_headroom_bytes.empty() ? buffer.classes[priority].headroom_bytes
                                            : buffer.port_headroom_bytes[port];
}

auto kind_of(const PortHeadroom& p) {
  return std::tuple(p.peer, p.speed.rate.bits_per_second, p.speed.delay);
}

}  // namespace

std::vector<PortHeadroom> list_port_headroom(const SimConfig& config) {
  std::vector<PortHeadroom> kinds;
  const Result<NetworkPlan> network = plan_network(config);
  if (!network) return kinds;
  const TopologyConfig& topology = network->topology;
  const std::optional<std::size_t> priority = lossless_class(topology.fabric.buffer);
  if (!priority) return kinds;
  const std::uint32_t frame = frame_bytes_max(config);
  const std::vector<std::array<std::uint16_t, 2>> port_numbers = link_ports(topology.plan);
  for (std::size_t i = 0; i < topology.plan.links.size(); ++i) {
    const LinkPlan& link = topology.plan.links[i];
    for (std::size_t end = 0; end < 2; ++end) {
      if (link.ends[end].kind != NodeKind::fabric_switch) continue;
      PortHeadroom port{.peer = link.ends[1 - end].kind, .speed = link.speed, .ports = 1};
      const auto known = std::ranges::find(kinds, kind_of(port), kind_of);
      if (known != kinds.end()) {
        ++known->ports;
        continue;
      }
      port.needed_bytes = headroom_needed_bytes({.rate = link.speed.rate,
                                                 .delay = link.speed.delay,
                                                 .own_frame_bytes = frame,
                                                 .peer_frame_bytes = frame});
      port.kept_bytes = kept_by(Topology::switch_config(topology, link.ends[end].index).buffer, *priority,
                                port_numbers[i][end]);
      kinds.push_back(port);
    }
  }
  std::ranges::stable_sort(kinds, {}, &PortHeadroom::peer);
  return kinds;
}

}  // namespace bx::sim
