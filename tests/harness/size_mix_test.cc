// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/size_mix.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>

namespace bx::harness {
namespace {

TEST(size_mix, parse_size_mix__forms) {
  EXPECT_EQ(parse_size_mix("1MiB")->shown(), "1MiB");
  EXPECT_EQ(parse_size_mix("64B..4MiB")->shown(), "log-uniform 64B..4MiB");
  EXPECT_EQ(parse_size_mix("log-uniform 64B..4MiB")->shown(), "log-uniform 64B..4MiB");
  EXPECT_EQ(parse_size_mix("uniform 0B..1kB")->shown(), "uniform 0B..1000B");
  EXPECT_EQ(parse_size_mix("4MiB..64B").error(), "begins above its end");
  EXPECT_FALSE(parse_size_mix("normal 1B..2B").has_value());
  EXPECT_FALSE(parse_size_mix("1B..").has_value());
  EXPECT_FALSE(parse_size_mix("1B..2B..3B").has_value());
}

TEST(size_mix, draw__fixed_and_uniform_stay_in_range_and_reach_both_ends) {
  Prng prng(1);
  EXPECT_EQ(SizeMix::fixed(77).draw(prng), 77U);
  const SizeMix mix = *parse_size_mix("uniform 3B..6B");
  std::map<std::uint64_t, int> seen;
  for (int i = 0; i < 400; ++i) ++seen[mix.draw(prng)];
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen.begin()->first, 3U);
  EXPECT_EQ(seen.rbegin()->first, 6U);
}

TEST(size_mix, draw__log_uniform_gives_each_doubling_the_same_share) {
  Prng prng(2);
  const SizeMix mix = *parse_size_mix("64B..1023B");  // four doublings
  std::map<int, int> doublings;
  for (int i = 0; i < 40'000; ++i) {
    const std::uint64_t size = mix.draw(prng);
    ASSERT_GE(size, 64U);
    ASSERT_LE(size, 1023U);
    ++doublings[static_cast<int>(std::bit_width(size))];
  }
  ASSERT_EQ(doublings.size(), 4U);
  for (const auto& [bits, count] : doublings) EXPECT_NEAR(count, 10'000, 500) << bits;
}

TEST(size_mix, draw__log_uniform_from_zero_and_of_one_value) {
  Prng prng(3);
  const SizeMix from_zero = *parse_size_mix("0B..3B");
  std::map<std::uint64_t, int> seen;
  for (int i = 0; i < 400; ++i) ++seen[from_zero.draw(prng)];
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_EQ(parse_size_mix("5B..5B")->draw(prng), 5U);
}

TEST(size_mix, draw__list_follows_the_weights) {
  SizeMix mix;
  mix.kind = SizeMix::Kind::list;
  mix.choices = {{64, 3}, {4096, 1}};
  Prng prng(4);
  int small = 0;
  for (int i = 0; i < 10'000; ++i) small += mix.draw(prng) == 64 ? 1 : 0;
  EXPECT_NEAR(small, 7500, 200);
  EXPECT_EQ(mix.smallest(), 64U);
  EXPECT_EQ(mix.largest(), 4096U);
  EXPECT_EQ(mix.shown(), "64B*3, 4KiB*1");
}

}  // namespace
}  // namespace bx::harness
