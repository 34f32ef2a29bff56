// SPDX-License-Identifier: GPL-2.0-only
// The headroom of a network's switch ports, by kind of port: a prediction from the configuration.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/topology_plan.h"
#include "sim/model/units.h"
#include "sim/provider/sim_config.h"

namespace bx::sim {

// Ports that have the same kind of peer, rate and delay, and therefore the same headroom.
struct PortHeadroom {
  NodeKind peer = NodeKind::host;
  LinkSpeed speed{};
  std::uint32_t ports = 0;         // of all switches
  std::uint64_t needed_bytes = 0;  // for each lossless class
  std::uint64_t kept_bytes = 0;    // as given, as computed, or the profile's for the rate and the delay
};

// In the order of the network's links, hosts' ports first. Empty if nothing is lossless or the configuration
// has no plan.
[[nodiscard]] std::vector<PortHeadroom> list_port_headroom(const SimConfig& config);

}  // namespace bx::sim
