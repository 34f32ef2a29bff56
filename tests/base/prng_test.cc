// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/prng.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace bx {
namespace {

// Computed by an independent implementation of splitmix64 and xoshiro256**; the first value of seed 0 is the
// one that other libraries publish.
TEST(Prng, next__gives_the_golden_values) {
  const std::array<std::pair<std::uint64_t, std::array<std::uint64_t, 4>>, 3> golden{{
      {0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c}},
      {1, {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514, 0x642e1c7bc266a3a7}},
      {0xfeedface, {0xedfc2c0be38e640f, 0x54b501b634465e46, 0x47110cc51d3d0d39, 0x1218ed46677c7af3}},
  }};
  for (const auto& [seed, values] : golden) {
    Prng prng(seed);
    for (const std::uint64_t value : values) EXPECT_EQ(prng.next(), value) << seed;
  }
}

TEST(Prng, fork__gives_the_golden_values) {
  Prng fork = Prng(1).fork("nic");
  EXPECT_EQ(fork.next(), 0x6535fdaed8871180ULL);
  EXPECT_EQ(fork.next(), 0x84a98f2183f444b7ULL);
}

TEST(Prng, fork__depends_on_seed_and_name_and_not_on_what_was_drawn) {
  Prng fresh(5);
  Prng used(5);
  for (int i = 0; i < 10; ++i) used.next();
  EXPECT_EQ(fresh.fork("a").next(), used.fork("a").next());
  EXPECT_NE(fresh.fork("a").next(), fresh.fork("b").next());
  EXPECT_NE(fresh.fork("a").next(), Prng(6).fork("a").next());
  EXPECT_NE(fresh.fork("").next(), Prng(5).next());
}

TEST(Prng, below__gives_the_golden_values) {
  Prng prng(7);
  for (const std::uint64_t value : {4U, 4U, 8U, 4U, 4U, 1U, 6U, 6U, 8U, 9U, 3U, 6U}) {
    EXPECT_EQ(prng.below(10), value);
  }
}

TEST(Prng, below__reaches_every_value_about_equally_often) {
  Prng prng(3);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[prng.below(counts.size())];
  for (const int count : counts) {
    EXPECT_GT(count, 9'600);  // four standard deviations of 93 around 10 000
    EXPECT_LT(count, 10'400);
  }
}

TEST(Prng, below__of_one_is_zero_and_of_the_largest_bound_stays_under_it) {
  Prng prng(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(prng.below(1), 0U);
    EXPECT_LT(prng.below(UINT64_MAX), UINT64_MAX);
  }
}

TEST(Prng, between__gives_the_golden_values) {
  Prng prng(7);
  for (const std::uint64_t value : {100U, 102U, 100U, 104U, 102U, 105U, 104U, 104U}) {
    EXPECT_EQ(prng.between(100, 105), value);
  }
}

TEST(Prng, between__includes_both_ends_and_the_whole_range) {
  Prng prng(1);
  bool low = false;
  bool high = false;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t value = prng.between(5, 6);
    low = low || value == 5;
    high = high || value == 6;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(prng.between(9, 9), 9U);
  Prng raw(2);
  Prng whole(2);
  EXPECT_EQ(whole.between(0, UINT64_MAX), raw.next());
}

TEST(Prng, uniform__gives_the_golden_values) {
  Prng prng(42);
  EXPECT_EQ(prng.uniform(), 0.08386297105988216);
  EXPECT_EQ(prng.uniform(), 0.3789802506626686);
  EXPECT_EQ(prng.uniform(), 0.6800434110281394);
}

TEST(Prng, chance__of_zero_never_happens_and_of_one_always) {
  Prng prng(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(prng.chance(0.0));
    EXPECT_TRUE(prng.chance(1.0));
  }
}

TEST(Prng, exponential__has_its_mean_and_is_never_negative) {
  Prng prng(42);
  EXPECT_DOUBLE_EQ(prng.exponential(100), 8.758933058341757);
  EXPECT_DOUBLE_EQ(prng.exponential(100), 47.63923950787724);
  double sum = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = prng.exponential(50);
    ASSERT_GE(draw, 0);
    sum += draw;
  }
  EXPECT_NEAR(sum / kDraws, 50, 0.7);  // four standard deviations
}

TEST(PrngDeathTest, below__of_zero_and_between_of_an_empty_range_are_programming_errors) {
  Prng prng(1);
  EXPECT_DEATH(prng.below(0), "above zero");
  EXPECT_DEATH(prng.between(2, 1), "low <= high");
}

}  // namespace
}  // namespace bx
