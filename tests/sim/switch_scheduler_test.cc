// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_scheduler.h"

#include <gtest/gtest.h>

#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::gbps;
using testing::kLossless;
using testing::Star;
using testing::star_config;
using testing::StarConfig;

constexpr std::uint64_t kMiB = 1024 * 1024;

TEST(Scheduler, plan_scheduler__the_least_weight_gets_a_largest_frame) {
  const SchedulerPlan plan = plan_scheduler({0, 10, 30, 0, 0, 25, 0, 0}, 1000);
  EXPECT_EQ(plan.strict, 0b11011001);
  EXPECT_EQ(plan.quantum[1], 1000U);
  EXPECT_EQ(plan.quantum[2], 3000U);
  EXPECT_EQ(plan.quantum[5], 2500U);
}

TEST(Scheduler, pick__strict_priorities_go_before_weighted_ones) {
  const SchedulerPlan plan = plan_scheduler({0, 1, 1, 0, 0, 0, 0, 0}, 1000);
  Scheduler scheduler;
  const auto front = [](std::uint8_t) { return 1000U; };
  EXPECT_EQ(scheduler.pick(plan, 0b10000111, front), 7);
  EXPECT_EQ(scheduler.pick(plan, 0b00000111, front), 0);
  EXPECT_EQ(scheduler.pick(plan, 0b00000110, front), 1);
  EXPECT_EQ(scheduler.pick(plan, 0b00000110, front), 2);
  EXPECT_EQ(scheduler.pick(plan, 0b00000110, front), 1);
}

TEST(Scheduler, pick__shares_bytes_by_weight_whatever_the_frame_sizes) {
  const SchedulerPlan plan = plan_scheduler({1, 2, 5, 0, 0, 0, 0, 0}, 4178);
  Scheduler scheduler;
  const std::array<std::uint32_t, 3> size{4178, 84, 1106};
  std::array<std::uint64_t, 3> bytes{};
  for (int i = 0; i < 200'000; ++i) {
    const std::uint8_t p = scheduler.pick(plan, 0b111, [&](std::uint8_t q) { return size[q]; });
    bytes[p] += size[p];
  }
  EXPECT_NEAR(static_cast<double>(bytes[1]) / static_cast<double>(bytes[0]), 2, 0.01);
  EXPECT_NEAR(static_cast<double>(bytes[2]) / static_cast<double>(bytes[0]), 5, 0.02);
}

TEST(Scheduler, emptied__a_queue_saves_nothing_up) {
  const SchedulerPlan plan = plan_scheduler({1, 1, 0, 0, 0, 0, 0, 0}, 1000);
  Scheduler scheduler;
  const auto front = [](std::uint8_t) { return 600U; };
  EXPECT_EQ(scheduler.pick(plan, 0b11, front), 1);  // the turn began at 0, whose deficit was nothing
  scheduler.emptied(1);
  // With the 400 that were left, 1 could send twice in its next turn.
  EXPECT_EQ(scheduler.pick(plan, 0b11, front), 0);
  EXPECT_EQ(scheduler.pick(plan, 0b11, front), 1);
  EXPECT_EQ(scheduler.pick(plan, 0b11, front), 0);
}

// Over a switch: three lossy-free classes into one port, of weights 1, 2 and 5, beside a strict one.
TEST(Scheduler, next_frame__shares_a_port_by_weight_beside_a_strict_class) {
  StarConfig config = star_config(5, 64 * kMiB);
  config.fabric.weights = {0, 1, 2, 5, 0, 0, 0, 0};
  for (std::uint8_t p = 1; p <= 6; ++p)
    config.fabric.buffer.classes[p] = config.fabric.buffer.classes[kLossless];
  Star star(EngineKind::fast, config);
  for (std::uint8_t p = 1; p <= 3; ++p) star.hosts[p - 1U].send({.dst = 4, .frames = 4000, .priority = p});
  star.engine.run(microseconds{300});
  star.hosts[3].send({.dst = 4, .frames = 100, .priority = 6});
  star.engine.run(microseconds{800});
  const auto bytes = [&](std::uint8_t p) { return static_cast<double>(star.fabric().queue(4, p).tx_bytes); };
  EXPECT_NEAR(bytes(2) / bytes(1), 2, 0.05);
  EXPECT_NEAR(bytes(3) / bytes(1), 5, 0.1);
  EXPECT_EQ(star.fabric().queue(4, 6).frames, 100U);
  EXPECT_EQ(star.fabric().queue(4, 6).bytes_max, 4178U);  // it never waited for more than a frame
}

}  // namespace
}  // namespace bx::sim
