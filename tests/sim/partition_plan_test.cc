// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/partition_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/model/topology_shapes.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;

const LinkSpeed kSpeed{gbps(100), microseconds{1}};

TopologyPlan leaves(std::uint16_t count) {
  return leaf_spine({.leaves = count,
                     .spines = 4,
                     .hosts_per_leaf = 3,
                     .parallel = 1,
                     .host_link = kSpeed,
                     .fabric_link = {gbps(100), nanoseconds{300}}});
}

std::size_t switches_in(const PartitionPlan& plan, std::size_t partition) {
  return static_cast<std::size_t>(std::count(plan.of_switch.begin(), plan.of_switch.end(), partition));
}

TEST(PartitionPlan, plan_partitions__one_has_everything) {
  const PartitionPlan plan = plan_partitions(leaves(4), 1).value();
  EXPECT_EQ(plan.of_switch, std::vector<std::uint16_t>(8, 0));
  EXPECT_EQ(plan.of_host, std::vector<std::uint16_t>(12, 0));
}

TEST(PartitionPlan, plan_partitions__keeps_pods_whole_and_spreads_the_cores) {
  const TopologyPlan topology =
      three_tier(fat_tree(4, kSpeed));  // 4 pods of 2 edges, 2 aggs, 4 hosts; 4 cores
  const PartitionPlan plan = plan_partitions(topology, 4).value();
  for (std::size_t at = 0; at < topology.switches.size(); ++at) {
    const std::string& name = topology.switches[at];
    if (name.starts_with("core")) continue;
    const int number = std::stoi(name.substr(name.find_first_of("0123456789")));
    EXPECT_EQ(plan.of_switch[at], number / 2) << name;
  }
  for (std::size_t host = 0; host < 16; ++host) EXPECT_EQ(plan.of_host[host], host / 4);
  for (std::size_t p = 0; p < 4; ++p) EXPECT_EQ(switches_in(plan, p), 5U);
}

TEST(PartitionPlan, plan_partitions__of_uneven_shares_leaves_none_empty) {
  for (std::uint16_t leaf_count = 1; leaf_count <= 9; ++leaf_count) {
    for (std::size_t count = 1; count <= leaf_count; ++count) {
      const PartitionPlan plan = plan_partitions(leaves(leaf_count), count).value();
      for (std::size_t p = 0; p < count; ++p) {
        EXPECT_GT(std::count(plan.of_host.begin(), plan.of_host.end(), p), 0) << leaf_count << ' ' << count;
      }
      EXPECT_TRUE(std::is_sorted(plan.of_host.begin(), plan.of_host.end()));
    }
  }
}

TEST(PartitionPlan, plan_partitions__looks_ahead_by_the_least_delay_between_partitions) {
  EXPECT_EQ(plan_partitions(leaves(4), 4).value().lookahead, nanoseconds{300});
}

TEST(PartitionPlan, plan_partitions__refuses_links_without_delay_only_between_partitions) {
  TopologyPlan topology = leaves(2);
  for (LinkPlan& link : topology.links) {
    if (link.ends[0].kind == NodeKind::host || link.ends[1].kind == NodeKind::host) link.speed.delay = {};
  }
  EXPECT_TRUE(plan_partitions(topology, 2));
  for (LinkPlan& link : topology.links) link.speed.delay = {};
  EXPECT_TRUE(plan_partitions(topology, 1));
  EXPECT_STREQ(plan_partitions(topology, 2).error().detail,
               "partitions: a link between two of them has no delay; give it one, or one partition");
  EXPECT_STREQ(plan_partitions(topology, 3).error().detail,
               "partitions: give no more than there are switches with hosts");
  EXPECT_STREQ(plan_partitions(topology, 0).error().detail, "partitions: give 1 to 256");
}

}  // namespace
}  // namespace bx::sim
