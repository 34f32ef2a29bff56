// SPDX-License-Identifier: GPL-2.0-only
// N:1 over one switch with whole NICs, PFC only: PFC keeps the bottleneck busy, so the last acknowledgement
// arrives when the closed form says, and nothing is ever faster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "sim/provider/raw_traffic.h"
#include "tests/sim/validation.h"

namespace bx::sim {
namespace {

struct Bound {
  std::uint16_t senders;
  std::uint64_t bytes;
  std::uint32_t mtu;
  double published_us;  // as quoted wherever these bounds are (RETH left out), to all their digits
};

class IncastBound : public ::testing::TestWithParam<Bound> {};

TEST_P(IncastBound, last_acknowledgement__equals_the_closed_form_and_nothing_beats_it) {
  const Bound& bound = GetParam();
  SimConfig config;
  config.hosts = bound.senders + 1U;
  config.mtu = bound.mtu;
  config.ecn.enabled = false;
  config.nic_tx_latency_ns = config.nic_rx_latency_ns = 0;
  std::vector<RawFlow> flows;
  for (std::uint16_t from = 1; from <= bound.senders; ++from) flows.push_back({from, 0, bound.bytes});
  const std::unique_ptr<RawTraffic> traffic = RawTraffic::create(config).value();
  traffic->post(flows);
  ASSERT_TRUE(traffic->run());
  Picoseconds last{};
  for (std::uint16_t h = 1; h <= bound.senders; ++h)
    last = std::max(last, traffic->network().nic(h).last_arrival());
  const double measured_us = static_cast<double>(last.count()) / 1e6;

  // t + d + N n t + d for the data, 2 (t_ack + d) for the last acknowledgement.
  const auto us = [&](double wire_bytes) { return wire_bytes * 8e6 / static_cast<double>(config.rate_bps); };
  const double delay_us = static_cast<double>(config.delay_ns) / 1e3;
  const double packets = static_cast<double>(bound.senders * (bound.bytes / bound.mtu));
  const double packet_us = us(bound.mtu + kRoceOverheadBytes);
  const double bound_us = packet_us + packets * packet_us + 2 * us(kRoceOverheadBytes + 4) + 4 * delay_us;
  EXPECT_NEAR(bound_us, bound.published_us, 0.05 + 1e-9);
  testing::validate({.section = "PFC-only incast",
                     .what = fmt::format("{}:1, {} KiB each, MTU {}, 100 Gb/s", bound.senders,
                                         bound.bytes / 1024, bound.mtu),
                     .against = "t + d + N n t + d + 2 (t_ack + d)",
                     .expected = bound_us,
                     .measured = measured_us,
                     .unit = "us",
                     .tolerance = 0.001});
  EXPECT_GE(measured_us, bound_us - 1e-6) << "faster than the wire";
  // Exact once the RETH of each message is counted: the first packet of each sender is 16 bytes longer.
  EXPECT_NEAR(measured_us, bound_us + us(16) * (1 + bound.senders), us(16) + 1e-6);
  EXPECT_EQ(traffic->network().topology().totals().lossless_drops, 0U);
}

constexpr std::uint64_t kKiB64 = 64U << 10U;
constexpr std::uint64_t kMiB = 1U << 20U;
INSTANTIATE_TEST_SUITE_P(Shapes, IncastBound,
                         ::testing::Values(Bound{16, kKiB64, 1024, 94.7}, Bound{64, kKiB64, 1024, 366.5},
                                           Bound{16, kMiB, 1024, 1453.8}, Bound{64, kMiB, 1024, 5802.7},
                                           Bound{16, kKiB64, 4096, 89.9}, Bound{64, kKiB64, 4096, 346.6},
                                           Bound{16, kMiB, 4096, 1373.4}, Bound{64, kMiB, 4096, 5480.5}),
                         [](const auto& shape) {
                           return fmt::format("{}_to_1_{}KiB_mtu{}", shape.param.senders,
                                              shape.param.bytes / 1024, shape.param.mtu);
                         });

}  // namespace
}  // namespace bx::sim
