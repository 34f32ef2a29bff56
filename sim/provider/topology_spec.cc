// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/topology_spec.h"

#include <utility>

#include "sim/model/topology_shapes.h"
#include "sim/provider/sim_config.h"

namespace bx::sim {
namespace {

constexpr std::uint32_t kSizeMax = 4096;  // of whatever a shape is made of

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

LinkSpeed speed_of(std::uint64_t rate_bps, std::uint64_t delay_ns) noexcept {
  return {{rate_bps}, nanoseconds{static_cast<std::int64_t>(delay_ns)}};
}

std::uint16_t narrow(std::uint32_t value) noexcept {
  return static_cast<std::uint16_t>(value);
}

// `hosts` divided among `parts`, or 0 if that does not work out.
std::uint16_t share(std::uint32_t hosts, std::uint32_t parts) noexcept {
  return parts != 0 && hosts % parts == 0 ? narrow(hosts / parts) : std::uint16_t{0};
}

class Planner {
 public:
  explicit Planner(const SimConfig& config)
      : spec_(config.topology),
        hosts_(config.hosts),
        host_link_(speed_of(config.rate_bps, config.delay_ns)),
        uplink_(speed_of(spec_.uplink_rate_bps != 0 ? spec_.uplink_rate_bps : config.rate_bps,
                         spec_.uplink_delay_ns != 0 ? spec_.uplink_delay_ns : config.delay_ns)) {}

  Result<TopologyPlan> plan() const {
    if (spec_.shape == "single-switch") return single_switch(narrow(hosts_), host_link_);
    if (spec_.shape == "dumbbell") return plan_dumbbell();
    if (spec_.shape == "leaf-spine") return plan_leaf_spine();
    if (spec_.shape == "fat-tree") return plan_fat_tree();
    if (spec_.shape == "three-tier") return plan_three_tier();
    if (spec_.shape == "rail") return plan_rail();
    if (spec_.shape != "file") return invalid("topology: there is no such shape");
    if (spec_.plan.hosts != hosts_) return invalid("hosts: the topology's file has another number of them");
    return spec_.plan;
  }

 private:
  Result<TopologyPlan> plan_dumbbell() const {
    if (hosts_ < 2) return invalid("hosts: a dumbbell has two at least");
    return dumbbell({.left = narrow((hosts_ + 1) / 2),
                     .right = narrow(hosts_ / 2),
                     .host_link = host_link_,
                     .bottleneck = uplink_});
  }

  Result<TopologyPlan> plan_leaf_spine() const {
    const std::uint16_t on_each = share(hosts_, spec_.leaves);
    if (on_each == 0) return invalid("hosts: give a multiple of the leaves");
    return leaf_spine({.leaves = narrow(spec_.leaves),
                       .spines = narrow(spec_.spines),
                       .hosts_per_leaf = on_each,
                       .host_link = host_link_,
                       .fabric_link = uplink_});
  }

  Result<TopologyPlan> plan_fat_tree() const {
    for (std::uint32_t k = 2; k * k * k / 4 <= hosts_; k += 2) {
      if (k * k * k / 4 != hosts_) continue;
      ThreeTierShape shape = fat_tree(narrow(k), host_link_);
      shape.fabric_link = uplink_;
      return three_tier(shape);
    }
    return invalid("hosts: a fat tree has k^3/4 for an even k: 2, 16, 54, 128, 250, 432, 686, 1024, ...");
  }

  Result<TopologyPlan> plan_three_tier() const {
    const std::uint16_t on_each = share(hosts_, spec_.pods * spec_.leaves);
    if (on_each == 0) return invalid("hosts: give a multiple of pods * leaves");
    return three_tier({.pods = narrow(spec_.pods),
                       .edges_per_pod = narrow(spec_.leaves),
                       .aggs_per_pod = narrow(spec_.spines),
                       .cores_per_group = narrow(spec_.cores),
                       .hosts_per_edge = on_each,
                       .host_link = host_link_,
                       .fabric_link = uplink_});
  }

  Result<TopologyPlan> plan_rail() const {
    const std::uint16_t machines = share(hosts_, spec_.pods * spec_.rails);
    if (machines == 0) return invalid("hosts: give a multiple of pods * rails");
    return rail_optimised({.groups = narrow(spec_.pods),
                           .machines_per_group = machines,
                           .rails = narrow(spec_.rails),
                           .spines = narrow(spec_.spines),
                           .host_link = host_link_,
                           .fabric_link = uplink_});
  }

  const TopologySpec& spec_;
  std::uint32_t hosts_;
  LinkSpeed host_link_;
  LinkSpeed uplink_;
};

}  // namespace

Result<TopologyPlan> plan_topology(const SimConfig& config) {
  const TopologySpec& spec = config.topology;
  for (const std::uint32_t size : {spec.leaves, spec.spines, spec.pods, spec.cores, spec.rails}) {
    if (size > kSizeMax) return invalid("topology: leaves, spines, pods, cores and rails are at most 4096");
  }
  Result<TopologyPlan> plan = Planner(config).plan();
  if (!plan) return plan;
  if (const Result<> checked = check_plan(*plan); !checked) return tl::unexpected<Error>(checked.error());
  return plan;
}

}  // namespace bx::sim
