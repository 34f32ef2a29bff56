// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/congestion_spec.h"

#include <gtest/gtest.h>

#include "sim/model/congestion_profiles.h"

namespace bx::sim {
namespace {

constexpr Rate kLine{100'000'000'000};

TEST(congestion_spec, plan_congestion__the_default_is_none) {
  const auto config = plan_congestion({}, kLine);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->algorithm, CongestionAlgorithm::none);
}

TEST(congestion_spec, plan_congestion__takes_the_profile_where_nothing_is_set) {
  CongestionSpec spec;
  spec.algorithm = "dcqcn";
  spec.profile = "nvidia";
  const auto config = plan_congestion(spec, kLine);
  ASSERT_TRUE(config);
  const auto profile = congestion_profile("nvidia", kLine);
  EXPECT_EQ(config->algorithm, CongestionAlgorithm::dcqcn);
  EXPECT_EQ(config->dcqcn.byte_counter, profile->dcqcn.byte_counter);
  EXPECT_EQ(config->dcqcn.rate_timer, profile->dcqcn.rate_timer);
  EXPECT_EQ(config->cnp.interval, profile->cnp.interval);
  EXPECT_EQ(config->cnp.scope, CnpScope::port);
}

TEST(congestion_spec, plan_congestion__cnp_with_naks_is_the_profiles_or_as_set) {
  const auto with_naks = [](std::string profile, std::string word) {
    CongestionSpec spec;
    spec.algorithm = "dcqcn";
    spec.profile = std::move(profile);
    spec.cnp_with_naks = std::move(word);
    return plan_congestion(spec, kLine).value().cnp.with_naks;
  };
  EXPECT_FALSE(with_naks("zhu15", "auto"));
  EXPECT_TRUE(with_naks("zhu15", "on"));
  EXPECT_TRUE(with_naks("nvidia", "auto"));
  EXPECT_FALSE(with_naks("nvidia", "off"));
}

TEST(congestion_spec, plan_congestion__each_value_can_be_set) {
  CongestionSpec spec;
  spec.algorithm = "dcqcn";
  spec.cnp_interval_ns = 7000;
  spec.cnp_scope = "address-pair";
  spec.cnp_dscp = 46;
  spec.np_delay_ns = 1500;
  spec.rp_delay_ns = 2500;
  spec.dcqcn = {.g = 0.125,
                .initial_alpha = 0.5,
                .alpha_timer_ns = 1000,
                .alpha_update = "timer",
                .rate_timer_ns = 2000,
                .byte_counter = 3000,
                .threshold = 4,
                .rate_ai_bps = 5'000'000,
                .rate_hai_bps = 6'000'000,
                .rate_min_bps = 7'000'000,
                .decrease_max = 0.25,
                .rate_on_first_cnp_bps = 8'000'000,
                .clamp_target = "raised-by-bytes",
                .rate_reduce_monitor_period_ns = 9000};
  const auto config = plan_congestion(spec, kLine);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->cnp.interval, microseconds{7});
  EXPECT_EQ(config->cnp.scope, CnpScope::address_pair);
  EXPECT_EQ(config->cnp.dscp, 46);
  EXPECT_EQ(config->cnp.delay, nanoseconds{1500});
  const DcqcnConfig& d = config->dcqcn;
  EXPECT_EQ(d.reaction_delay, nanoseconds{2500});
  EXPECT_EQ(d.g, 0.125);
  EXPECT_EQ(d.initial_alpha, 0.5);
  EXPECT_EQ(d.alpha_timer, microseconds{1});
  EXPECT_EQ(d.alpha_update, AlphaUpdate::on_timer);
  EXPECT_EQ(d.rate_timer, microseconds{2});
  EXPECT_EQ(d.byte_counter, 3000U);
  EXPECT_EQ(d.threshold, 4U);
  EXPECT_EQ(d.rate_ai, 5'000'000U);
  EXPECT_EQ(d.rate_hai, 6'000'000U);
  EXPECT_EQ(d.rate_min, 7'000'000U);
  EXPECT_EQ(d.decrease_max, 0.25);
  EXPECT_EQ(d.rate_on_first_cnp, 8'000'000U);
  EXPECT_FALSE(d.clamp_target);
  EXPECT_FALSE(d.clamp_target_after_timer);
  EXPECT_EQ(d.rate_reduce_monitor_period, microseconds{9});
}

TEST(congestion_spec, plan_congestion__swift_as_written) {
  CongestionSpec spec;
  spec.algorithm = "swift";
  spec.swift.base_target_ns = 9000;
  spec.swift.window_initial = 12;
  const auto config = plan_congestion(spec, kLine);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->algorithm, CongestionAlgorithm::swift);
  EXPECT_EQ(config->swift.base_target, microseconds{9});
  EXPECT_EQ(config->swift.window_initial, 12);
  // The two declarations of the defaults agree.
  const auto defaults = plan_congestion({}, kLine);
  EXPECT_EQ(defaults->swift.base_target, SwiftConfig{}.base_target);
  EXPECT_EQ(defaults->swift.flow_scaling_range, SwiftConfig{}.flow_scaling_range);
  EXPECT_EQ(defaults->swift.window_min, SwiftConfig{}.window_min);
  EXPECT_EQ(defaults->swift.flow_scaling_window_max, SwiftConfig{}.flow_scaling_window_max);
}

}  // namespace
}  // namespace bx::sim
