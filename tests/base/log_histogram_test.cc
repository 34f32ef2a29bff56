// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/log_histogram.h"

#include <gtest/gtest.h>

namespace bx {
namespace {

TEST(LogHistogram, add__counts_by_powers_of_two) {
  LogHistogram histogram;
  for (const std::int64_t ns : {0, 1, 2, 3, 4, 1023, 1024}) histogram.add(Duration(ns));
  EXPECT_EQ(histogram.count_in(0), 2U);
  EXPECT_EQ(histogram.count_in(1), 2U);
  EXPECT_EQ(histogram.count_in(2), 1U);
  EXPECT_EQ(histogram.count_in(9), 1U);
  EXPECT_EQ(histogram.count_in(10), 1U);
  EXPECT_EQ(histogram.count(), 7U);
  EXPECT_EQ(histogram.sum_ns(), 2057U);
}

TEST(LogHistogram, add__longest_duration_has_a_bucket) {
  LogHistogram histogram;
  histogram.add(Duration::max());
  EXPECT_EQ(histogram.count_in(62), 1U);
}

TEST(LogHistogram, add__of_another_adds_each_bucket) {
  LogHistogram a;
  LogHistogram b;
  a.add(Duration(5));
  b.add(Duration(5));
  b.add(Duration(100));
  a.add(b);
  EXPECT_EQ(a.count_in(2), 2U);
  EXPECT_EQ(a.count_in(6), 1U);
  EXPECT_EQ(a.sum_ns(), 110U);
}

TEST(LogHistogram, end_of__is_the_first_duration_above) {
  EXPECT_EQ(LogHistogram::end_of(0), 2.0);
  EXPECT_EQ(LogHistogram::end_of(9), 1024.0);
  EXPECT_EQ(LogHistogram::end_of(63), 18446744073709551616.0);
}

TEST(LogHistogram, quantile__is_the_end_of_its_bucket) {
  LogHistogram histogram;
  EXPECT_EQ(histogram.quantile_ns(500), 0);
  for (int i = 0; i < 99; ++i) histogram.add(Duration(1000));
  histogram.add(Duration(1'000'000));
  EXPECT_EQ(histogram.quantile_ns(500), 1024);
  EXPECT_EQ(histogram.quantile_ns(990), 1024);
  EXPECT_EQ(histogram.quantile_ns(991), 1048576);
  EXPECT_EQ(histogram.quantile_ns(1000), 1048576);
}

}  // namespace
}  // namespace bx
