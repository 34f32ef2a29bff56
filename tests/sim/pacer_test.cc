// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/pacer.h"

#include <gtest/gtest.h>

namespace bx::sim {
namespace {

TEST(Pacer, sent__does_nothing_without_a_limit) {
  Pacer pacer;
  pacer.sent(microseconds{1}, 1106);
  EXPECT_FALSE(pacer.limited());
  EXPECT_LE(pacer.ready_at(), microseconds{1});
}

TEST(Pacer, sent__a_million_packets_take_their_bits_divided_by_the_rate) {
  // A rate that no picosecond divides: the remainders must not add up.
  constexpr std::uint64_t kRate = 3'333'333'337;
  Pacer pacer;
  pacer.set_rate(Picoseconds{0}, kRate);
  Picoseconds now{};
  constexpr std::uint64_t kPackets = 1'000'000;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    pacer.sent(now, 1106);
    now = pacer.ready_at();
  }
  const auto exact = static_cast<long double>(kPackets) * 1106 * 8 * 1e12L / kRate;
  EXPECT_NEAR(static_cast<double>(now.count()), static_cast<double>(exact), 1.0);
}

TEST(Pacer, set_rate__changes_what_is_left_of_the_pause) {
  Pacer pacer;
  pacer.set_rate(Picoseconds{0}, 1'000'000'000);
  pacer.sent(Picoseconds{0}, 1000);  // 8000 bits: 8 us
  EXPECT_EQ(pacer.ready_at(), microseconds{8});
  pacer.set_rate(microseconds{4}, 2'000'000'000);  // half is paid, the rest takes half as long
  EXPECT_EQ(pacer.ready_at(), microseconds{6});
  pacer.set_rate(microseconds{5}, 500'000'000);
  EXPECT_EQ(pacer.ready_at(), microseconds{9});
  pacer.set_rate(microseconds{20}, 500'000'000);
  EXPECT_LE(pacer.ready_at(), microseconds{20});
}

TEST(Pacer, sent__makes_up_for_a_late_packet_but_not_for_idleness) {
  Pacer pacer;
  pacer.set_rate(Picoseconds{0}, 1'000'000'000);
  pacer.sent(Picoseconds{0}, 1000);
  pacer.sent(microseconds{11}, 1000);  // 3 us late
  EXPECT_EQ(pacer.ready_at(), microseconds{16});
  pacer.sent(microseconds{40}, 1000);  // 24 us late: more than a packet's time
  EXPECT_EQ(pacer.ready_at(), microseconds{48});
}

TEST(Pacer, release__forgets_the_debt) {
  Pacer pacer;
  pacer.set_rate(Picoseconds{0}, 1'000'000);
  pacer.sent(Picoseconds{0}, 4178);
  pacer.release();
  EXPECT_FALSE(pacer.limited());
  pacer.set_rate(microseconds{1}, 1'000'000'000);
  EXPECT_LE(pacer.ready_at(), microseconds{1});
}

}  // namespace
}  // namespace bx::sim
