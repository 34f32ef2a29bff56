// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/metric_set.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

TEST(metric_set, metric__sums_counters_and_keeps_the_largest_level) {
  MetricSet set;
  set.metric("calls", 2, "count");
  set.metric("queue_max", 7, "bytes");
  set.metric("calls", 3, "count");
  set.metric("queue_max", 5, "bytes");
  EXPECT_EQ(set.value_or("calls", -1), 5);
  EXPECT_EQ(set.value_or("queue_max", -1), 7);
  EXPECT_EQ(set.value_or("missing", -1), -1);
  EXPECT_EQ(set.names(), (std::vector<std::string>{"calls", "queue_max"}));
}

TEST(metric_set, set__replaces) {
  MetricSet set;
  set.metric("a", 2, "count");
  set.set("a", 1, "ns");
  EXPECT_EQ(set.find("a")->value, 1);
  EXPECT_EQ(set.find("a")->unit, "ns");
}

TEST(metric_set, since__subtracts_counters_but_not_levels) {
  MetricSet before;
  before.metric("frames", 10, "count");
  before.metric("queue_max", 4, "bytes");
  before.metric("use", 0.5, "ratio");
  MetricSet after;
  after.metric("frames", 12, "count");
  after.metric("queue_max", 9, "bytes");
  after.metric("use", 0.7, "ratio");
  after.metric("new", 1, "count");
  const MetricSet since = after.since(before);
  EXPECT_EQ(since.value_or("frames", -1), 2);
  EXPECT_EQ(since.value_or("queue_max", -1), 9);
  EXPECT_EQ(since.value_or("use", -1), 0.7);
  EXPECT_EQ(since.value_or("new", -1), 1);
}

TEST(metric_set, since__leaves_what_memory_holds_at_the_moment) {
  MetricSet before;
  before.level("memory.send_in_use", 4096, "bytes");
  before.metric("memory.copied_out", 3, "count");
  MetricSet after;
  after.level("memory.send_in_use", 64, "bytes");
  after.metric("memory.copied_out", 5, "count");
  const MetricSet since = after.since(before);
  EXPECT_EQ(since.value_or("memory.send_in_use", -1), 64);
  EXPECT_EQ(since.value_or("memory.copied_out", -1), 2);
}

}  // namespace
}  // namespace bx::harness
