// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/nic_spec.h"

#include <gtest/gtest.h>

namespace bx::sim {
namespace {

TEST(nic_spec, plan_costs__off_by_default) {
  const Result<NicCostConfig> costs = plan_costs({});
  ASSERT_TRUE(costs.has_value());
  EXPECT_FALSE(costs->enabled);
}

TEST(nic_spec, plan_costs__numbers_take_the_place_of_the_profiles) {
  const Result<NicCostConfig> costs =
      plan_costs({.profile = "connectx5", .pcie_read_latency_ns = 700, .qp_cache = 10, .late_dma = "off"});
  ASSERT_TRUE(costs.has_value());
  EXPECT_TRUE(costs->enabled);
  EXPECT_EQ(costs->pcie.read_latency, nanoseconds{700});
  EXPECT_EQ(costs->queue_pairs.entries, 10U);
  EXPECT_FALSE(costs->late_dma);
  EXPECT_EQ(costs->packets_per_second, find_nic_profile("connectx5")->packets_per_second);
}

TEST(nic_spec, plan_costs__refuses_what_means_nothing) {
  EXPECT_FALSE(plan_costs({.profile = "connectx9"}).has_value());
  EXPECT_FALSE(plan_costs({.qp_cache = 10}).has_value()) << "numbers without a profile";
  EXPECT_FALSE(plan_costs({.profile = "ideal", .units = 17}).has_value());
  EXPECT_FALSE(plan_costs({.profile = "ideal", .late_dma = "perhaps"}).has_value());
  EXPECT_TRUE(plan_costs({.profile = "ideal", .receive_buffer_bytes = 1U << 16U}).has_value());
}

}  // namespace
}  // namespace bx::sim
