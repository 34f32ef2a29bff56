// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/swift.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bx::sim {
namespace {

constexpr Rate kLine{100'000'000'000};
constexpr std::uint32_t kPacket = 1106;
constexpr double kOne = 65536;

struct Machine {
  explicit Machine(const SwiftConfig& c) : config(c), swift(config, kLine, kPacket) {}
  [[nodiscard]] double window() const { return static_cast<double>(swift.window()) / kOne; }
  SwiftConfig config;
  Pacer pacer;
  Swift swift;
};

SwiftConfig fixed_target(double window) {
  return {.base_target = microseconds{10}, .window_initial = window, .flow_scaling_range = {}};
}

TEST(Swift, starts__with_the_line_rate_for_the_target) {
  Machine m({.base_target = microseconds{10}});
  EXPECT_NEAR(m.window(), 100e9 * 10e-6 / (8 * kPacket), 0.01);
  EXPECT_NEAR(static_cast<double>(m.swift.rate()), 100e9, 1e7);
}

TEST(Swift, on_rtt__under_target_adds_ai_for_each_window) {
  Machine m(fixed_target(16));
  m.swift.on_ack(16);
  m.swift.on_rtt(microseconds{100}, microseconds{5}, m.pacer);
  EXPECT_NEAR(m.window(), 17, 0.001);
  m.swift.on_ack(34);
  m.swift.on_rtt(microseconds{105}, microseconds{5}, m.pacer);
  EXPECT_NEAR(m.window(), 19, 0.001);
  EXPECT_EQ(m.swift.packets(), 19U);
}

TEST(Swift, on_rtt__over_target_shrinks_in_proportion_once_a_round_trip) {
  Machine m(fixed_target(100));
  m.swift.on_rtt(microseconds{100}, microseconds{20}, m.pacer);  // 0.8 * 10 / 20
  EXPECT_NEAR(m.window(), 60, 0.01);
  m.swift.on_rtt(microseconds{110}, microseconds{20}, m.pacer);
  EXPECT_NEAR(m.window(), 60, 0.01);
  m.swift.on_rtt(microseconds{120}, microseconds{20}, m.pacer);
  EXPECT_NEAR(m.window(), 36, 0.01);
  m.swift.on_rtt(microseconds{1000}, microseconds{500}, m.pacer);  // 0.784 is more than max_mdf
  EXPECT_NEAR(m.window(), 18, 0.01);
}

TEST(Swift, on_loss__halves_once_a_round_trip) {
  Machine m(fixed_target(100));
  m.swift.on_loss(microseconds{100}, m.pacer);
  m.swift.on_loss(microseconds{101}, m.pacer);
  EXPECT_NEAR(m.window(), 50, 0.01);
}

TEST(Swift, window__below_one_packet_is_paced) {
  Machine m(fixed_target(1));
  m.swift.on_rtt(microseconds{100}, microseconds{100}, m.pacer);  // halved
  EXPECT_NEAR(m.window(), 0.5, 0.001);
  EXPECT_EQ(m.swift.packets(), 1U);
  ASSERT_TRUE(m.pacer.limited());
  // Half a packet in each round trip.
  EXPECT_NEAR(static_cast<double>(m.pacer.rate()), 0.5 * kPacket * 8 / 100e-6, 1e4);
  m.swift.on_ack(1);
  m.swift.on_rtt(microseconds{200}, microseconds{5}, m.pacer);
  EXPECT_NEAR(m.window(), 1.5, 0.001);
  EXPECT_FALSE(m.pacer.limited());
  for (int i = 1; i < 50; ++i) m.swift.on_rtt(milliseconds{i}, microseconds{900}, m.pacer);
  EXPECT_NEAR(m.window(), m.config.window_min, 0.001);
}

TEST(Swift, target__grows_as_one_over_the_root_of_the_window) {
  const auto target_at = [](double window) {
    SwiftConfig config{.base_target = microseconds{10}, .flow_scaling_range = microseconds{30}};
    config.window_initial = window;
    return static_cast<double>(Machine(config).swift.target().count()) / 1e6;
  };
  const double most = 1 / std::sqrt(0.1);
  const double least = 1 / std::sqrt(100.0);
  for (const double w : {1.0, 4.0, 25.0, 64.0}) {
    EXPECT_NEAR(target_at(w), 10 + 30 * (1 / std::sqrt(w) - least) / (most - least), 0.01) << w;
  }
  EXPECT_NEAR(target_at(100), 10, 0.001);
  EXPECT_NEAR(target_at(1000), 10, 0.001);
}

}  // namespace
}  // namespace bx::sim
