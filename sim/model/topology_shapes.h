// SPDX-License-Identifier: GPL-2.0-only
// The usual shapes of networks, as plans. Sizes of zero give a plan that check_plan refuses.
#pragma once

#include <cstdint>

#include "sim/model/topology_plan.h"

namespace bx::sim {

// All hosts on "switch0"; host i is on port i.
[[nodiscard]] TopologyPlan single_switch(std::uint16_t hosts, LinkSpeed speed);

//   hosts 0 .. left-1 -- left ==== right -- hosts left .. left+right-1
struct DumbbellShape {
  std::uint16_t left = 0;
  std::uint16_t right = 0;
  LinkSpeed host_link{};
  LinkSpeed bottleneck{};
};
[[nodiscard]] TopologyPlan dumbbell(const DumbbellShape& shape);

// Every leaf to every spine, `parallel` links each; host h is on leaf h / hosts_per_leaf.
struct LeafSpineShape {
  std::uint16_t leaves = 0;
  std::uint16_t spines = 0;
  std::uint16_t hosts_per_leaf = 0;
  std::uint16_t parallel = 1;
  LinkSpeed host_link{};
  LinkSpeed fabric_link{};
};
[[nodiscard]] TopologyPlan leaf_spine(const LeafSpineShape& shape);

// Three tiers. In a pod every edge switch has a link to every aggregation switch; the a-th aggregation switch
// of every pod has a link to each of the a-th group of cores:
//
//   core<a * cores_per_group + c>         one to agg<a> of each pod
//   agg<p * aggs_per_pod + a>             one to each edge of pod p
//   edge<p * edges_per_pod + e>           one to each of its hosts
struct ThreeTierShape {
  std::uint16_t pods = 0;
  std::uint16_t edges_per_pod = 0;
  std::uint16_t aggs_per_pod = 0;
  std::uint16_t cores_per_group = 0;
  std::uint16_t hosts_per_edge = 0;
  LinkSpeed host_link{};
  LinkSpeed fabric_link{};
};
[[nodiscard]] TopologyPlan three_tier(const ThreeTierShape& shape);

// The k-ary fat tree of Al-Fares, Loukissas, Vahdat ("A scalable, commodity data center network
// architecture", SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts,
// k even.
[[nodiscard]] ThreeTierShape fat_tree(std::uint16_t k, LinkSpeed speed);

// Rail-optimised: machines of `rails` NICs in groups; NIC r of every machine of a group is on rail switch r
// of the group, and rail switches are joined by spines. Host h is NIC h % rails of machine h / rails. With no
// spines there is to be one group, and hosts of different rails cannot reach each other: check_plan refuses.
struct RailShape {
  std::uint16_t groups = 1;
  std::uint16_t machines_per_group = 0;
  std::uint16_t rails = 0;
  std::uint16_t spines = 0;
  LinkSpeed host_link{};
  LinkSpeed fabric_link{};
};
[[nodiscard]] TopologyPlan rail_optimised(const RailShape& shape);

}  // namespace bx::sim
