// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/closed_form.h"

#include <gtest/gtest.h>

#include <vector>

namespace bx::harness {
namespace {

constexpr LinkModel kLink4096{100'000'000'000, 1'000'000, 4096};
constexpr LinkModel kLink1024{100'000'000'000, 1'000'000, 1024};

// Published closed form of public simulators: it ends at the sender's last acknowledgement, which takes an
// ACK of 86 bytes across both links more.
double with_acknowledgement_us(std::uint64_t ps) {
  return (static_cast<double>(ps) + 2 * (6'880 + 1'000'000)) / 1e6;
}

std::uint64_t incast(const LinkModel& link, std::size_t n, std::uint64_t bytes) {
  return incast_bound_ps(link, std::vector<std::uint64_t>(n, bytes));
}

TEST(closed_form, wire_bytes__full_and_partial_packets) {
  EXPECT_EQ(wire_bytes(0, 4096), 84U);  // the minimum frame
  EXPECT_EQ(wire_bytes(1, 4096), 84U);
  EXPECT_EQ(wire_bytes(64, 4096), 146U);
  EXPECT_EQ(wire_bytes(4096, 4096), 4178U);
  EXPECT_EQ(wire_bytes(4097, 4096), 4178U + 84U);
  EXPECT_EQ(wire_bytes(1U << 20U, 1024), 1024U * 1106U);
}

TEST(closed_form, incast_bound_ps__the_numbers_of_public_simulators) {
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink1024, 16, 1U << 20U)), 1453.8, 0.1);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink1024, 64, 1U << 20U)), 5802.73, 0.01);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink1024, 16, 64U << 10U)), 94.7, 0.1);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink1024, 64, 64U << 10U)), 366.5, 0.1);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink4096, 16, 1U << 20U)), 1373.4, 0.1);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink4096, 64, 1U << 20U)), 5480.54, 0.01);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink4096, 16, 64U << 10U)), 89.9, 0.1);
  EXPECT_NEAR(with_acknowledgement_us(incast(kLink4096, 64, 64U << 10U)), 346.6, 0.1);
}

TEST(closed_form, incast_bound_ps__exact_in_picoseconds) {
  // 4178 bytes take 334.24 ns at 100 Gb/s: 16 * 256 packets, the first one twice, and two propagations.
  EXPECT_EQ(incast(kLink4096, 16, 1U << 20U), (16U * 256U + 1U) * 334'240U + 2'000'000U);
}

TEST(closed_form, incast_bound_ps__mixed_sizes_begin_with_the_shortest_first_packet) {
  // 64 B is 146 bytes on the wire (11.68 ns), 8 KiB twice 4178.
  EXPECT_EQ(incast_bound_ps(kLink4096, std::vector<std::uint64_t>{8192, 64}),
            11'680U + 11'680U + 2 * 334'240U + 2'000'000U);
}

TEST(closed_form, flow_bound_ps__the_last_packet_crosses_both_links) {
  EXPECT_EQ(flow_bound_ps(kLink4096, 4096 + 64), 334'240U + 11'680U + 11'680U + 2'000'000U);
  EXPECT_EQ(flow_bound_ps(kLink4096, 0), 2 * 6'720U + 2'000'000U);
}

}  // namespace
}  // namespace bx::harness
