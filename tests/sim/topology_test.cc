// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology.h"

#include <gtest/gtest.h>

#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;
using testing::kForever;
using testing::kLossless;
using testing::Star;
using testing::star_config;
using testing::TrafficHost;

constexpr std::uint64_t kMiB = 1024 * 1024;

TEST(SingleSwitch, check__says_what_is_wrong_with_the_switch) {
  EXPECT_TRUE(SingleSwitch::check(star_config(65, 32 * kMiB)).has_value());
  const Result<> too_small = SingleSwitch::check(star_config(65, 1 * kMiB));
  ASSERT_FALSE(too_small.has_value());
  EXPECT_EQ(too_small.error().code, ErrorCode::exhausted);
  EXPECT_FALSE(SingleSwitch::check(star_config(0, 1 * kMiB)).has_value());
}

TEST(SingleSwitch, connect_host__every_host_reaches_every_other) {
  Star star(EngineKind::fast, star_config(5, 4 * kMiB));
  for (std::uint16_t i = 0; i < 5; ++i) {
    for (std::uint16_t j = 0; j < 5; ++j) star.hosts[i].send({.dst = j, .frames = 1});
  }
  EXPECT_TRUE(star.engine.run(kForever));
  for (const TrafficHost& host : star.hosts) EXPECT_EQ(host.arrivals().size(), 5U);
  EXPECT_EQ(star.topology.digest().frames(), 25U);
}

}  // namespace
}  // namespace bx::sim
