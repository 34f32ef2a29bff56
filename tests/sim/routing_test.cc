// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/routing.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "libbx/base/prng.h"
#include "sim/model/topology_shapes.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;

const LinkSpeed kSpeed{gbps(100), microseconds{1}};
using Routes = std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<std::uint16_t>>;

Routes routes_of(const TopologyPlan& plan, const std::vector<LinkDirections>& up) {
  Routes routes;
  Routing(plan).visit_routes(
      up, [&](std::uint16_t at, std::uint16_t target, std::span<const std::uint16_t> p) {
        EXPECT_NE(at, target);
        const bool is_new = routes.emplace(std::pair{at, target}, std::vector(p.begin(), p.end())).second;
        EXPECT_TRUE(is_new);
      });
  return routes;
}

std::vector<LinkDirections> all_up(const TopologyPlan& plan) {
  return std::vector<LinkDirections>(plan.links.size(), {true, true});
}

TEST(Routing, visit_routes__a_fat_tree_has_k_over_2_ways_up_and_one_down) {
  const TopologyPlan plan = three_tier(fat_tree(4, kSpeed));
  const Routes routes = routes_of(plan, all_up(plan));
  // Edge e is switch e; its ports are two hosts and two aggregations.
  EXPECT_EQ(routes.at({0, 1}), (std::vector<std::uint16_t>{2, 3}));  // the other edge of the pod
  EXPECT_EQ(routes.at({0, 7}), (std::vector<std::uint16_t>{2, 3}));  // of another pod
  EXPECT_EQ(routes.at({8, 0}).size(), 1U);                           // aggregation of pod 0: down
  EXPECT_EQ(routes.at({8, 7}).size(), 2U);                           // up, by either core of its group
  EXPECT_EQ(routes.at({16, 7}).size(), 1U);                          // a core: down
  EXPECT_EQ(routes.size(), 8U * 19);
}

TEST(Routing, visit_routes__goes_round_what_is_down_and_counts_one_direction_only) {
  const TopologyPlan plan =
      leaf_spine({.leaves = 2, .spines = 2, .hosts_per_leaf = 1, .host_link = kSpeed, .fabric_link = kSpeed});
  std::vector<LinkDirections> up = all_up(plan);
  const std::size_t link = find_links(plan, "leaf1-spine0").front();
  ASSERT_EQ(plan.links[link].ends[0], switch_node(1));
  up[link][1] = false;  // spine0 cannot send to leaf1
  const Routes routes = routes_of(plan, up);
  EXPECT_EQ(routes.at({0, 1}), (std::vector<std::uint16_t>{2}));     // by spine1 only
  EXPECT_EQ(routes.at({1, 0}), (std::vector<std::uint16_t>{1, 2}));  // back by both
  EXPECT_EQ(routes.at({2, 1}), (std::vector<std::uint16_t>{0}));     // spine0: by leaf0 and spine1
}

TEST(Routing, visit_routes__is_empty_where_there_is_no_way) {
  const TopologyPlan plan = dumbbell({.left = 1, .right = 1, .host_link = kSpeed, .bottleneck = kSpeed});
  std::vector<LinkDirections> up = all_up(plan);
  up[2] = {false, false};
  const Routes routes = routes_of(plan, up);
  EXPECT_TRUE(routes.at({0, 1}).empty());
  EXPECT_TRUE(routes.at({1, 0}).empty());
}

// Whatever is cut, every route leads closer: following any port always ends at the target.
TEST(Routing, visit_routes__never_loops) {
  const TopologyPlan plan = three_tier(fat_tree(4, kSpeed));
  const auto ports = link_ports(plan);
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint16_t> neighbour;
  for (std::size_t l = 0; l < plan.links.size(); ++l) {
    for (std::size_t end = 0; end < 2; ++end) {
      neighbour[{plan.links[l].ends[end].index, ports[l][end]}] = plan.links[l].ends[1 - end].index;
    }
  }
  Prng random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<LinkDirections> up = all_up(plan);
    for (LinkDirections& link : up) link = {!random.chance(0.2), !random.chance(0.2)};
    const Routes routes = routes_of(plan, up);
    for (const auto& [key, ways] : routes) {
      auto [at, target] = key;
      for (std::size_t hops = 0; at != target; ++hops) {
        ASSERT_LT(hops, plan.switches.size());
        const auto& next = routes.at({at, target});
        if (next.empty()) {
          ASSERT_TRUE(ways.empty());
          break;
        }
        at = neighbour.at({at, next[random.below(next.size())]});
      }
    }
  }
}

TEST(Routing, attachments__say_where_each_host_hangs) {
  const TopologyPlan plan = three_tier(fat_tree(4, kSpeed));
  const Routing routing(plan);
  ASSERT_EQ(routing.attachments().size(), 16U);
  EXPECT_EQ(routing.attachments()[5].at, 2);
  EXPECT_EQ(routing.attachments()[5].port, 1);
  EXPECT_EQ(routing.attachments()[5].link, 5U);
  EXPECT_EQ(routing.attachments()[5].switch_end, 1U);
}

}  // namespace
}  // namespace bx::sim
