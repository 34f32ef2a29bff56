// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/topology_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/model/topology_shapes.h"
#include "sim/provider/network_plan.h"
#include "sim/provider/sim_config.h"
#include "sim/provider/sim_fabric.h"

namespace bx::sim {
namespace {

SimConfig of_shape(std::string shape, std::uint32_t hosts) {
  SimConfig config;
  config.hosts = hosts;
  config.topology.shape = std::move(shape);
  return config;
}

TEST(TopologySpec, plan_topology__makes_each_shape) {
  const auto switches = [](const SimConfig& config) {
    const Result<TopologyPlan> plan = plan_topology(config);
    EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().detail);
    EXPECT_EQ(plan->hosts, config.hosts);
    return plan->switches.size();
  };
  EXPECT_EQ(switches(of_shape("single-switch", 9)), 1U);
  EXPECT_EQ(switches(of_shape("dumbbell", 9)), 2U);
  EXPECT_EQ(switches(of_shape("leaf-spine", 8)), 4U);
  EXPECT_EQ(switches(of_shape("fat-tree", 128)), 80U);
  EXPECT_EQ(switches(of_shape("three-tier", 8)), 4U + 4 + 2);
  EXPECT_EQ(switches(of_shape("rail", 32)), 16U + 2);
}

TEST(TopologySpec, plan_topology__names_what_does_not_fit) {
  const auto detail = [](const SimConfig& config) {
    const Result<TopologyPlan> plan = plan_topology(config);
    return plan ? std::string() : std::string(plan.error().detail);
  };
  EXPECT_THAT(detail(of_shape("torus", 8)), testing::HasSubstr("topology"));
  EXPECT_THAT(detail(of_shape("dumbbell", 1)), testing::HasSubstr("hosts"));
  EXPECT_THAT(detail(of_shape("leaf-spine", 9)), testing::HasSubstr("leaves"));
  EXPECT_THAT(detail(of_shape("fat-tree", 127)), testing::HasSubstr("1024"));
  EXPECT_THAT(detail(of_shape("rail", 30)), testing::HasSubstr("rails"));
  SimConfig no_spines = of_shape("leaf-spine", 8);
  no_spines.topology.spines = 0;
  EXPECT_EQ(detail(no_spines), "some hosts cannot reach each other");
  SimConfig huge = of_shape("leaf-spine", 8);
  huge.topology.spines = 70'000;
  EXPECT_THAT(detail(huge), testing::HasSubstr("4096"));
}

TEST(TopologySpec, plan_topology__takes_a_plan_from_a_file_as_it_is) {
  SimConfig config = of_shape("file", 3);
  config.topology.plan = single_switch(3, {{40'000'000'000}, nanoseconds{5}});
  EXPECT_EQ(plan_topology(config)->links[1].speed.delay, nanoseconds{5});
  config.hosts = 4;
  EXPECT_FALSE(plan_topology(config).has_value());
}

TEST(TopologySpec, plan_network__gives_each_port_the_headroom_of_its_link) {
  SimConfig config = of_shape("dumbbell", 4);
  config.topology.uplink_rate_bps = 400'000'000'000;
  config.topology.uplink_delay_ns = 2000;
  const Result<NetworkPlan> plan = plan_network(config);
  ASSERT_TRUE(plan.has_value());
  const BufferConfig buffer = Topology::switch_config(plan->topology, 0).buffer;
  EXPECT_EQ(buffer.port_headroom_bytes[2], SimFabric::headroom_needed_bytes(config));
  EXPECT_EQ(buffer.port_headroom_bytes[2] - buffer.port_headroom_bytes[0], 200'000U - 25'000);
}

TEST(TopologySpec, plan_network__takes_buffers_from_a_profile) {
  SimConfig config = of_shape("single-switch", 33);
  config.buffer.profile = "th2";
  const Result<BufferConfig> buffer = buffer_of(config);
  ASSERT_TRUE(buffer.has_value());
  EXPECT_EQ(buffer->total_bytes, 43'481'152U);
  EXPECT_EQ(buffer->headroom_pool_bytes, 8'965'632U);
  EXPECT_EQ(buffer->port_headroom_bytes.at(32), 101'088U);  // 100 Gb/s, 1 us: the 300 m cable
  EXPECT_EQ(buffer->classes[3].xon_offset_bytes, 2496U);
}

TEST(TopologySpec, plan_network__refuses_switches_that_cannot_be) {
  const std::vector<std::pair<const char*, std::function<void(SimConfig&)>>> cases{
      {"watchdog", [](SimConfig& c) { c.pfc.watchdog = "bark"; }},
      {"watchdog", [](SimConfig& c) { c.pfc.watchdog_poll_ns = 0; }},
      {"profile", [](SimConfig& c) { c.buffer.profile = "th9"; }},
      {"uplinks", [](SimConfig& c) { c.topology.uplink_delay_ns = UINT64_MAX; }},
      {"priorities", [](SimConfig& c) { c.scheduling.priorities.dscp[5] = 8; }},
  };
  for (const auto& [named, spoil] : cases) {
    SimConfig config = of_shape("dumbbell", 4);
    spoil(config);
    const Result<NetworkPlan> plan = plan_network(config);
    ASSERT_FALSE(plan.has_value()) << named;
    EXPECT_THAT(plan.error().detail, testing::HasSubstr(named));
  }
}

}  // namespace
}  // namespace bx::sim
