// SPDX-License-Identifier: GPL-2.0-only
// What a scenario says about the shape of its network, and the plan that follows.
#pragma once

#include <cstdint>
#include <string>

#include "libbx/base/result.h"
#include "sim/model/topology_plan.h"

namespace bx::sim {

struct SimConfig;

struct TopologySpec {
  // single-switch, dumbbell, leaf-spine, fat-tree, three-tier, rail; or file: `plan` as it is.
  std::string shape = "single-switch";
  std::uint32_t leaves = 2;  // leaf-spine; three-tier: edge switches of a pod
  std::uint32_t spines = 2;  // leaf-spine and rail; three-tier: aggregation switches of a pod
  std::uint32_t pods = 2;    // three-tier; rail: groups of machines
  std::uint32_t cores = 1;   // three-tier: of each aggregation switch
  std::uint32_t rails = 8;   // rail: NICs of a machine
  // Of links between switches; 0: as the hosts' links.
  std::uint64_t uplink_rate_bps = 0;
  std::uint64_t uplink_delay_ns = 0;
  std::uint64_t reroute_delay_ns = 10'000'000;  // see TopologyConfig
  TopologyPlan plan{};
};

// Errors: invalid_argument with a detail that names the field (no such shape, hosts that the shape cannot
// have) and those of check_plan.
[[nodiscard]] Result<TopologyPlan> plan_topology(const SimConfig& config);

}  // namespace bx::sim
