// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/units.h"

#include <gtest/gtest.h>

namespace bx::sim {
namespace {

class SerialiserTest : public testing::TestWithParam<std::uint64_t> {};

// The sum of a million truncated divisions would be up to a microsecond short; the sum with the remainder
// carried is the truncation of the exact sum.
TEST_P(SerialiserTest, time_for__a_million_frames_end_where_the_closed_form_says) {
  const Rate rate{GetParam() * 1'000'000'000ULL};
  for (const std::uint64_t wire_bytes : {84ULL, 1106ULL, 1107ULL, 4178ULL}) {
    Serialiser serialiser(rate);
    Picoseconds sum{};
    for (int i = 0; i < 1'000'000; ++i) sum += serialiser.time_for(wire_bytes);
    // bytes * 8 * 1e12 ps / (G * 1e9): a million frames of n bytes take n * 8e9 / G picoseconds.
    const std::uint64_t exact_ps = wire_bytes * 8'000'000'000ULL / GetParam();
    EXPECT_EQ(static_cast<std::uint64_t>(sum.count()), exact_ps) << wire_bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Gbps, SerialiserTest, testing::Values(10, 25, 40, 50, 100, 200, 400, 800));

TEST(Serialiser, time_for__carries_the_remainder) {
  Serialiser serialiser(Rate{3'000'000'000'000ULL});  // a byte takes 8/3 ps
  EXPECT_EQ(serialiser.time_for(1), Picoseconds{2});
  EXPECT_EQ(serialiser.time_for(1), Picoseconds{3});
  EXPECT_EQ(serialiser.time_for(1), Picoseconds{3});
  EXPECT_EQ(serialiser.time_for(1), Picoseconds{2});
}

TEST(Serialiser, time_for__large_counts_carry_like_small_ones) {
  const Rate rate{7'000'000'001ULL};
  constexpr std::uint64_t kPart = 1U << 20U;
  Serialiser whole(rate);
  Serialiser parts(rate);
  for (int round = 0; round < 5; ++round) {
    const Picoseconds at_once = whole.time_for(3 * kPart);
    EXPECT_EQ(parts.time_for(kPart) + parts.time_for(kPart) + parts.time_for(kPart), at_once);
    EXPECT_EQ(parts.time_for(1), whole.time_for(1));
  }
}

TEST(Serialiser, time_for__survives_a_terabyte) {
  Serialiser serialiser(Rate{1'000'000'000ULL});
  EXPECT_EQ(serialiser.time_for(1'000'000'000'000ULL), Picoseconds{std::chrono::seconds{8000}});
}

}  // namespace
}  // namespace bx::sim
