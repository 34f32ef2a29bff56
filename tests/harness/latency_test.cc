// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/latency.h"

#include <gtest/gtest.h>

#include "harness/measure/metric_set.h"

namespace bx::harness {
namespace {

TEST(latency, percentile__nearest_rank) {
  Samples samples;
  for (const std::uint64_t value : {50U, 15U, 20U, 35U, 40U}) samples.add(value);
  EXPECT_EQ(samples.percentile(0), 15U);
  EXPECT_EQ(samples.percentile(30), 20U);
  EXPECT_EQ(samples.percentile(40), 20U);
  EXPECT_EQ(samples.percentile(50), 35U);
  EXPECT_EQ(samples.percentile(100), 50U);
  samples.add(1);  // after sorting
  EXPECT_EQ(samples.percentile(0), 1U);
}

TEST(latency, percentile__of_a_hundred) {
  Samples samples;
  for (std::uint64_t i = 100; i > 0; --i) samples.add(i);
  EXPECT_EQ(samples.percentile(99), 99U);
  EXPECT_EQ(samples.percentile(90), 90U);
  EXPECT_DOUBLE_EQ(samples.mean(), 50.5);
}

TEST(latency, mean__does_not_overflow) {
  Samples samples;
  for (int i = 0; i < 4; ++i) samples.add(1ULL << 63U);
  EXPECT_DOUBLE_EQ(samples.mean(), 9223372036854775808.0);
}

TEST(latency, report__names_and_nothing_of_nothing) {
  MetricSet set;
  Samples samples;
  samples.report("call.latency", set);
  EXPECT_TRUE(set.all().empty());
  samples.add(7);
  samples.report("call.latency", set);
  EXPECT_EQ(set.names(),
            (std::vector<std::string>{"call.latency.mean", "call.latency.min", "call.latency.p50",
                                      "call.latency.p90", "call.latency.p99", "call.latency.max"}));
  EXPECT_EQ(set.find("call.latency.p99")->unit, "ns");
}

}  // namespace
}  // namespace bx::harness
