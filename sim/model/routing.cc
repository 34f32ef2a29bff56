// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/routing.h"

#include <algorithm>

namespace bx::sim {

Routing::Routing(const TopologyPlan& plan) : edges_(plan.switches.size()), attachments_(plan.hosts) {
  const std::vector<std::array<std::uint16_t, 2>> ports = link_ports(plan);
  for (std::size_t link = 0; link < plan.links.size(); ++link) {
    for (std::size_t end = 0; end < 2; ++end) {
      const Node here = plan.links[link].ends[end];
      const Node there = plan.links[link].ends[1 - end];
      if (here.kind != NodeKind::fabric_switch) continue;
      if (there.kind == NodeKind::host) {
        attachments_[there.index] = {here.index, ports[link][end], link, end};
        targets_.push_back(here.index);
      } else {
        edges_[here.index].push_back({ports[link][end], there.index, link, end});
      }
    }
  }
  std::sort(targets_.begin(), targets_.end());
  targets_.erase(std::unique(targets_.begin(), targets_.end()), targets_.end());
}

void Routing::measure(std::uint16_t target, std::span<const LinkDirections> up,
                      std::vector<std::uint32_t>& hops) const {
  hops.assign(edges_.size(), kFar);
  hops[target] = 0;
  std::vector<std::uint16_t> order{target};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Edge& edge : edges_[order[i]]) {
      // Frames travel towards the target: from the neighbour to here.
      if (!up[edge.link][1 - edge.end] || hops[edge.neighbour] != kFar) continue;
      hops[edge.neighbour] = hops[order[i]] + 1;
      order.push_back(edge.neighbour);
    }
  }
}

void Routing::visit_routes(std::span<const LinkDirections> up, const Visit& visit) const {
  std::vector<std::uint32_t> hops;
  std::vector<std::uint16_t> ports;
  for (const std::uint16_t target : targets_) {
    measure(target, up, hops);
    for (std::size_t at = 0; at < edges_.size(); ++at) {
      if (at == target) continue;
      ports.clear();
      for (const Edge& edge : edges_[at]) {
        if (hops[at] != kFar && up[edge.link][edge.end] && hops[edge.neighbour] + 1 == hops[at]) {
          ports.push_back(edge.port);
        }
      }
      visit(static_cast<std::uint16_t>(at), target, ports);
    }
  }
}

}  // namespace bx::sim
