// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pause_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::kLossless;
using testing::Net;
using testing::star_config;

TEST(PauseGraph, find_pauses__nothing_when_nothing_is_paused) {
  Net net(EngineKind::fast, star_config(3, 4U << 20U).topology());
  net.hosts[0].send({.dst = 1, .frames = 100});
  net.engine.run(microseconds{10});
  EXPECT_TRUE(find_pauses(net.topology, net.engine.now()).ports.empty());
}

TEST(PauseGraph, find_pauses__from_paused_senders_to_the_host_that_pauses) {
  Net net(EngineKind::fast, star_config(4, 300'000).topology());
  net.hosts[0].send_pfc(1U << kLossless, 65535);
  net.hosts[1].send({.dst = 0, .frames = 200});
  net.hosts[2].send({.dst = 0, .frames = 200});
  net.engine.run(microseconds{300});
  const PauseGraph graph = find_pauses(net.topology, net.engine.now());
  EXPECT_TRUE(graph.cycle.empty());
  ASSERT_EQ(graph.ports.size(), 3U);  // two senders, and the switch's port to host0
  const auto root = std::find_if(graph.ports.begin(), graph.ports.end(), [](auto& p) { return p.by_host; });
  ASSERT_NE(root, graph.ports.end());
  EXPECT_EQ(root->name, "switch0:0");
  EXPECT_EQ(root->by, "host0");
  EXPECT_GT(root->bytes_waiting, 0U);
  for (const PausedPort& port : graph.ports) {
    if (port.by_host) continue;
    EXPECT_EQ(port.waits_for,
              (std::vector<std::size_t>{static_cast<std::size_t>(root - graph.ports.begin())}));
  }
  const std::vector<std::string> lines = describe(graph, 10);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("host0 pauses switch0:0 in priority 3 for 29"));
  EXPECT_THAT(lines[0], HasSubstr("and behind them 2 paused ports"));
  EXPECT_THAT(lines, Contains(HasSubstr("host1 is paused by switch0:1 in priority 3")));
  EXPECT_EQ(describe(graph, 2).back(), "and 2 more paused ports");
}

// Three switches in a ring with hosts on each, routed one way round: each host sends to the one two switches
// on. Every link of the ring fills with frames that must go on over the next.
TEST(PauseGraph, find_pauses__a_cycle_is_a_deadlock) {
  constexpr std::uint16_t kRing = 3;
  const LinkSpeed link{testing::gbps(100), microseconds{1}};
  TopologyPlan plan{.hosts = 2 * kRing, .switches = {"a", "b", "c"}, .links = {}};
  for (std::uint16_t s = 0; s < kRing; ++s) {
    plan.links.push_back({{host_node(s), switch_node(s)}, link});  // port 0 of s
    plan.links.push_back({{host_node(static_cast<std::size_t>(s) + kRing), switch_node(s)}, link});  // port 1
  }
  for (std::uint16_t s = 0; s < kRing; ++s) {
    plan.links.push_back({{switch_node(s), switch_node((s + 1U) % kRing)}, link});
  }
  TopologyConfig config{.plan = plan, .fabric = star_config(4, 400'000).fabric};
  config.headroom = HeadroomRule::computed;
  Net net(EngineKind::fast, config);
  const auto numbers = link_ports(plan);
  for (std::uint16_t s = 0; s < kRing; ++s) {
    const std::uint16_t onward = numbers[2U * kRing + s][0];
    for (std::uint16_t host = 0; host < 2 * kRing; ++host) {
      if (host % kRing != s) net.topology.switch_at(s).set_route(host, {&onward, 1});
    }
  }
  for (std::uint16_t host = 0; host < 2 * kRing; ++host) {
    net.hosts[host].send({.dst = static_cast<std::uint16_t>((host + 2) % kRing), .frames = 3000});
  }
  net.engine.run(milliseconds{5});
  const PauseGraph graph = find_pauses(net.topology, net.engine.now());
  ASSERT_EQ(graph.cycle.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(graph.ports[graph.cycle[i]].waits_for, Contains(graph.cycle[(i + 1) % 3]));
  }
  EXPECT_THAT(describe(graph, 20)[0], HasSubstr("PFC deadlock in priority 3: "));
  std::uint64_t arrived = 0;
  for (auto& host : net.hosts) arrived += host.arrivals().size();
  net.engine.run(milliseconds{8});
  std::uint64_t later = 0;
  for (auto& host : net.hosts) later += host.arrivals().size();
  EXPECT_EQ(arrived, later);  // for ever
  EXPECT_EQ(net.topology.totals().lossless_drops, 0U);
}

}  // namespace
}  // namespace bx::sim
