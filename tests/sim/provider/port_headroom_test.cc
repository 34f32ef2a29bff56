// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/port_headroom.h"

#include <gtest/gtest.h>

#include "sim/provider/sim_fabric.h"

namespace bx::sim {
namespace {

SimConfig dumbbell() {
  SimConfig config;
  config.hosts = 6;
  config.topology.shape = "dumbbell";
  config.topology.uplink_rate_bps = 400'000'000'000;
  config.topology.uplink_delay_ns = 2000;
  return config;
}

TEST(port_headroom, list_port_headroom__is_by_peer_rate_and_delay) {
  const SimConfig config = dumbbell();
  const std::vector<PortHeadroom> kinds = list_port_headroom(config);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].peer, NodeKind::host);
  EXPECT_EQ(kinds[0].ports, 6U);
  EXPECT_EQ(kinds[0].speed.rate.bits_per_second, 100'000'000'000U);
  EXPECT_EQ(kinds[1].peer, NodeKind::fabric_switch);
  EXPECT_EQ(kinds[1].ports, 2U);  // both ends of the uplink
  EXPECT_EQ(kinds[1].speed.delay, nanoseconds{2000});
  // 2 d B: 1 us at 100 Gb/s and 2 us at 400 Gb/s.
  EXPECT_EQ(kinds[1].needed_bytes - kinds[0].needed_bytes, 200'000U - 25'000);
  EXPECT_EQ(kinds[1].needed_bytes, SimFabric::headroom_needed_bytes(config));
  for (const PortHeadroom& kind : kinds) EXPECT_EQ(kind.kept_bytes, kind.needed_bytes);
}

TEST(port_headroom, list_port_headroom__keeps_what_was_given_or_the_profile_has) {
  SimConfig config = dumbbell();
  config.pfc.headroom_bytes = 300'000;
  for (const PortHeadroom& kind : list_port_headroom(config)) EXPECT_EQ(kind.kept_bytes, 300'000U);
  config.pfc.headroom_bytes = 0;
  config.buffer.profile = "th2";
  const std::vector<PortHeadroom> kinds = list_port_headroom(config);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].kept_bytes, 101'088U);               // 100 Gb/s, 1 us: the 300 m cable
  EXPECT_EQ(kinds[1].kept_bytes, kinds[1].needed_bytes);  // it has nothing for 400 Gb/s
}

TEST(port_headroom, list_port_headroom__is_empty_where_nothing_is_lossless) {
  SimConfig config = dumbbell();
  config.buffer.lossless_priorities = 0;
  EXPECT_TRUE(list_port_headroom(config).empty());
  config = dumbbell();
  config.pfc.enabled = false;
  EXPECT_TRUE(list_port_headroom(config).empty());
  config = dumbbell();
  config.mtu = 1000;
  EXPECT_TRUE(list_port_headroom(config).empty());  // no plan
}

}  // namespace
}  // namespace bx::sim
