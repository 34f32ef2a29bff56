// SPDX-License-Identifier: GPL-2.0-only
// A network as a graph: hosts, switches, and links with a rate and a delay each. A plan is a value: shapes
// make one (topology_shapes.h), a file can be read into one, and Topology builds it.
//
// A host here is one port of a NIC with an address of its own; a machine with four NICs is four hosts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/result.h"
#include "sim/model/units.h"

namespace bx::sim {

enum class NodeKind : std::uint8_t { host, fabric_switch };

struct Node {
  NodeKind kind = NodeKind::host;
  std::uint16_t index = 0;  // among those of its kind
  friend bool operator==(const Node&, const Node&) = default;
};
constexpr Node host_node(std::size_t index) noexcept {
  return {NodeKind::host, static_cast<std::uint16_t>(index)};
}
constexpr Node switch_node(std::size_t index) noexcept {
  return {NodeKind::fabric_switch, static_cast<std::uint16_t>(index)};
}

struct LinkSpeed {
  Rate rate{};
  Picoseconds delay{};  // one way
};

struct LinkPlan {
  std::array<Node, 2> ends{};
  LinkSpeed speed{};
};

struct TopologyPlan {
  std::uint16_t hosts = 0;            // "host0" ..
  std::vector<std::string> switches;  // their names
  std::vector<LinkPlan> links;        // the ports of a switch are numbered in the order of its links
};

inline constexpr std::size_t kHostsMax = 4096;
inline constexpr std::size_t kSwitchesMax = 4096;
inline constexpr std::size_t kSwitchPortsMax = 4096;

// Errors: invalid_argument with a detail that names the rule: every host has one link, to a switch; a link
// joins two nodes that exist and are not the same, at a rate; names of switches are unique; every host
// reaches every other.
[[nodiscard]] Result<> check_plan(const TopologyPlan& plan);

// Of each switch, its number of ports.
[[nodiscard]] std::vector<std::uint16_t> switch_ports(const TopologyPlan& plan);
// The port number of each end of each link: on a host always 0.
[[nodiscard]] std::vector<std::array<std::uint16_t, 2>> link_ports(const TopologyPlan& plan);

[[nodiscard]] std::string node_name(const TopologyPlan& plan, Node node);
// Nothing for a name that no node has.
[[nodiscard]] std::optional<Node> find_node(const TopologyPlan& plan, std::string_view name);
// "host3" finds the link of that host; "leaf0-spine1", in either order, those that join the two: several, if
// there are parallel ones. Empty if there is none.
[[nodiscard]] std::vector<std::size_t> find_links(const TopologyPlan& plan, std::string_view name);

}  // namespace bx::sim
