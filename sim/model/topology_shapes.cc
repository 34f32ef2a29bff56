// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology_shapes.h"

#include <string>
#include <string_view>

namespace bx::sim {
namespace {

// Adds `count` switches "<prefix>0" .. and returns the index of the first.
std::size_t add_switches(TopologyPlan& plan, std::string_view prefix, std::size_t count) {
  const std::size_t first = plan.switches.size();
  for (std::size_t i = 0; i < count; ++i) plan.switches.push_back(std::string(prefix) + std::to_string(i));
  return first;
}

void add_hosts(TopologyPlan& plan, std::size_t count, std::size_t on_switch, LinkSpeed speed) {
  for (std::size_t i = 0; i < count; ++i) {
    plan.links.push_back({{host_node(plan.hosts), switch_node(on_switch)}, speed});
    ++plan.hosts;
  }
}

void join(TopologyPlan& plan, std::size_t lower, std::size_t upper, LinkSpeed speed) {
  plan.links.push_back({{switch_node(lower), switch_node(upper)}, speed});
}

}  // namespace

TopologyPlan single_switch(std::uint16_t hosts, LinkSpeed speed) {
  TopologyPlan plan;
  add_hosts(plan, hosts, add_switches(plan, "switch", 1), speed);
  return plan;
}

TopologyPlan dumbbell(const DumbbellShape& shape) {
  TopologyPlan plan;
  plan.switches = {"left", "right"};
  add_hosts(plan, shape.left, 0, shape.host_link);
  add_hosts(plan, shape.right, 1, shape.host_link);
  join(plan, 0, 1, shape.bottleneck);
  return plan;
}

TopologyPlan leaf_spine(const LeafSpineShape& shape) {
  TopologyPlan plan;
  const std::size_t leaf = add_switches(plan, "leaf", shape.leaves);
  const std::size_t spine = add_switches(plan, "spine", shape.spines);
  for (std::size_t l = 0; l < shape.leaves; ++l) {
    add_hosts(plan, shape.hosts_per_leaf, leaf + l, shape.host_link);
  }
  for (std::size_t l = 0; l < shape.leaves; ++l) {
    for (std::size_t s = 0; s < shape.spines; ++s) {
      for (std::size_t i = 0; i < shape.parallel; ++i) join(plan, leaf + l, spine + s, shape.fabric_link);
    }
  }
  return plan;
}

TopologyPlan three_tier(const ThreeTierShape& shape) {
  TopologyPlan plan;
  const std::size_t edge = add_switches(plan, "edge", std::size_t{shape.pods} * shape.edges_per_pod);
  const std::size_t agg = add_switches(plan, "agg", std::size_t{shape.pods} * shape.aggs_per_pod);
  const std::size_t core =
      add_switches(plan, "core", std::size_t{shape.aggs_per_pod} * shape.cores_per_group);
  for (std::size_t e = edge; e < agg; ++e) add_hosts(plan, shape.hosts_per_edge, e, shape.host_link);
  for (std::size_t pod = 0; pod < shape.pods; ++pod) {
    const std::size_t first_agg = agg + pod * shape.aggs_per_pod;
    for (std::size_t e = 0; e < shape.edges_per_pod; ++e) {
      for (std::size_t a = 0; a < shape.aggs_per_pod; ++a) {
        join(plan, edge + pod * shape.edges_per_pod + e, first_agg + a, shape.fabric_link);
      }
    }
    for (std::size_t a = 0; a < shape.aggs_per_pod; ++a) {
      for (std::size_t c = 0; c < shape.cores_per_group; ++c) {
        join(plan, first_agg + a, core + a * shape.cores_per_group + c, shape.fabric_link);
      }
    }
  }
  return plan;
}

ThreeTierShape fat_tree(std::uint16_t k, LinkSpeed speed) {
  const auto half = static_cast<std::uint16_t>(k / 2);
  const std::uint16_t pods = k % 2 == 0 ? k : std::uint16_t{0};  // an odd k is no fat tree
  return {.pods = pods,
          .edges_per_pod = half,
          .aggs_per_pod = half,
          .cores_per_group = half,
          .hosts_per_edge = half,
          .host_link = speed,
          .fabric_link = speed};
}

TopologyPlan rail_optimised(const RailShape& shape) {
  TopologyPlan plan;
  const std::size_t rail = add_switches(plan, "rail", std::size_t{shape.groups} * shape.rails);
  const std::size_t spine = add_switches(plan, "spine", shape.spines);
  for (std::size_t g = 0; g < shape.groups; ++g) {
    for (std::size_t m = 0; m < shape.machines_per_group; ++m) {
      for (std::size_t r = 0; r < shape.rails; ++r) {
        add_hosts(plan, 1, rail + g * shape.rails + r, shape.host_link);
      }
    }
  }
  for (std::size_t r = rail; r < spine; ++r) {
    for (std::size_t s = 0; s < shape.spines; ++s) join(plan, r, spine + s, shape.fabric_link);
  }
  return plan;
}

}  // namespace bx::sim
