// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/model/topology_shapes.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;

const LinkSpeed kSpeed{gbps(100), microseconds{1}};

TopologyPlan two_leaves() {
  return leaf_spine({.leaves = 2,
                     .spines = 2,
                     .hosts_per_leaf = 2,
                     .parallel = 2,
                     .host_link = kSpeed,
                     .fabric_link = kSpeed});
}

TEST(TopologyPlan, check_plan__refuses_what_cannot_be) {
  const auto detail_of = [](auto change) {
    TopologyPlan plan = two_leaves();
    change(plan);
    const Result<> checked = check_plan(plan);
    return checked ? std::string() : std::string(checked.error().detail);
  };
  EXPECT_EQ(detail_of([](TopologyPlan&) {}), "");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.hosts = 0; }), "a topology has 1 to 4096 hosts");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { ++p.hosts; }), "each host has one link");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.links.push_back(p.links[0]); }), "each host has one link");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.switches[1] = p.switches[0]; }),
            "each switch needs a name of its own");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.switches[1] = "host7"; }),
            "a switch may not be called like a host");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.switches.push_back("alone"); }),
            "a switch has 1 to 4096 links");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.links[0].ends[1].index = 9; }),
            "a link leads to a node that the topology does not have");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.links[4].ends[0] = p.links[4].ends[1]; }),
            "a link joins a node to itself");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.links[0].ends[1] = host_node(1); }),
            "a link joins two hosts: it needs a switch");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.links[0].speed.rate = {}; }), "a link needs a rate");
  EXPECT_EQ(detail_of([](TopologyPlan& p) { p.links[0].speed.delay = Picoseconds{-1}; }),
            "a link delays by zero or more");
}

TEST(TopologyPlan, check_plan__hosts_must_reach_each_other) {
  TopologyPlan rails = rail_optimised({.machines_per_group = 2, .rails = 2, .host_link = kSpeed});
  EXPECT_EQ(std::string(check_plan(rails).error().detail), "some hosts cannot reach each other");
  rails = rail_optimised(
      {.machines_per_group = 2, .rails = 2, .spines = 1, .host_link = kSpeed, .fabric_link = kSpeed});
  EXPECT_TRUE(check_plan(rails).has_value());
}

TEST(TopologyPlan, switch_ports__and_their_numbers_follow_the_links) {
  const TopologyPlan plan = two_leaves();
  EXPECT_EQ(switch_ports(plan), (std::vector<std::uint16_t>{6, 6, 4, 4}));
  const auto ports = link_ports(plan);
  ASSERT_EQ(ports.size(), 4U + 8);
  EXPECT_EQ(ports[0], (std::array<std::uint16_t, 2>{0, 0}));
  EXPECT_EQ(ports[1], (std::array<std::uint16_t, 2>{0, 1}));
  EXPECT_EQ(ports[4], (std::array<std::uint16_t, 2>{2, 0}));   // leaf0 to spine0
  EXPECT_EQ(ports[5], (std::array<std::uint16_t, 2>{3, 1}));   // parallel
  EXPECT_EQ(ports[11], (std::array<std::uint16_t, 2>{5, 3}));  // leaf1 to spine1
}

TEST(TopologyPlan, find_node__by_the_name_that_node_name_gives) {
  const TopologyPlan plan = two_leaves();
  for (const Node node : {host_node(0), host_node(3), switch_node(0), switch_node(3)}) {
    EXPECT_EQ(find_node(plan, node_name(plan, node)), node);
  }
  EXPECT_EQ(node_name(plan, switch_node(3)), "spine1");
  for (const char* name : {"host4", "host01", "host", "host-1", "host1x", "leaf2", ""}) {
    EXPECT_FALSE(find_node(plan, name).has_value()) << name;
  }
}

TEST(TopologyPlan, find_links__of_a_host_and_between_switches) {
  const TopologyPlan plan = two_leaves();
  EXPECT_EQ(find_links(plan, "host3"), (std::vector<std::size_t>{3}));
  EXPECT_EQ(find_links(plan, "leaf1-host3"), (std::vector<std::size_t>{3}));
  EXPECT_EQ(find_links(plan, "leaf0-spine0"), (std::vector<std::size_t>{4, 5}));
  EXPECT_EQ(find_links(plan, "spine0-leaf0"), (std::vector<std::size_t>{4, 5}));
  EXPECT_TRUE(find_links(plan, "leaf0-leaf1").empty());
  EXPECT_TRUE(find_links(plan, "leaf0").empty());
}

struct Shape {
  const char* name;
  TopologyPlan plan;
  std::size_t hosts;
  std::size_t switches;
  std::size_t links;
};
class ShapeTest : public ::testing::TestWithParam<Shape> {};

TEST_P(ShapeTest, shape__has_the_nodes_and_links_of_its_definition) {
  const Shape& shape = GetParam();
  EXPECT_TRUE(check_plan(shape.plan).has_value());
  EXPECT_EQ(shape.plan.hosts, shape.hosts);
  EXPECT_EQ(shape.plan.switches.size(), shape.switches);
  EXPECT_EQ(shape.plan.links.size(), shape.links);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ShapeTest,
    ::testing::Values(Shape{"single_switch", single_switch(65, kSpeed), 65, 1, 65},
                      Shape{"dumbbell",
                            dumbbell({.left = 3, .right = 2, .host_link = kSpeed, .bottleneck = kSpeed}), 5,
                            2, 6},
                      Shape{"leaf_spine", two_leaves(), 4, 4, 4 + 8},
                      // k = 4: 16 hosts, 4 cores, 8 edges, 8 aggregations, 3 * k^3 / 4 links.
                      Shape{"fat_tree_4", three_tier(fat_tree(4, kSpeed)), 16, 20, 48},
                      Shape{"fat_tree_16", three_tier(fat_tree(16, kSpeed)), 1024, 320, 3072},
                      Shape{"three_tier",
                            three_tier({.pods = 2,
                                        .edges_per_pod = 3,
                                        .aggs_per_pod = 2,
                                        .cores_per_group = 1,
                                        .hosts_per_edge = 5,
                                        .host_link = kSpeed,
                                        .fabric_link = kSpeed}),
                            30, 12, 30 + 12 + 4},
                      Shape{"rail",
                            rail_optimised({.groups = 2,
                                            .machines_per_group = 4,
                                            .rails = 8,
                                            .spines = 3,
                                            .host_link = kSpeed,
                                            .fabric_link = kSpeed}),
                            64, 19, 64 + 48}),
    [](const auto& shape) { return std::string(shape.param.name); });

TEST(Shapes, rail_optimised__puts_the_nics_of_a_rail_on_one_switch) {
  const TopologyPlan plan = rail_optimised({.groups = 2,
                                            .machines_per_group = 3,
                                            .rails = 4,
                                            .spines = 1,
                                            .host_link = kSpeed,
                                            .fabric_link = kSpeed});
  for (std::uint16_t host = 0; host < plan.hosts; ++host) {
    const std::size_t group = host / 12;
    EXPECT_EQ(plan.links[host].ends[1], switch_node(group * 4 + host % 4));
  }
}

TEST(Shapes, fat_tree__of_an_odd_k_is_refused) {
  EXPECT_FALSE(check_plan(three_tier(fat_tree(5, kSpeed))).has_value());
}

}  // namespace
}  // namespace bx::sim
