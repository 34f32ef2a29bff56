// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/series.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

SeriesRow row_at(std::uint64_t time) {
  SeriesRow row;
  row.values[0] = time;
  return row;
}

TEST(series, add__thins_out_when_full_and_keeps_reaching_now) {
  Series series(10);
  for (std::uint64_t i = 1; i <= Series::kRowsMax; ++i) series.add(row_at(i * 10));
  EXPECT_EQ(series.rows().size(), Series::kRowsMax);
  EXPECT_EQ(series.interval_ns(), 10U);
  series.add(row_at(Series::kRowsMax * 10 + 20));
  EXPECT_EQ(series.rows().size(), Series::kRowsMax / 2 + 1);
  EXPECT_EQ(series.interval_ns(), 20U);
  for (std::size_t i = 0; i < series.rows().size(); ++i) EXPECT_EQ(series.rows()[i].values[0], (i + 1) * 20);
}

TEST(series, csv__header_and_rows) {
  Series series(1);
  EXPECT_EQ(
      series.csv(),
      "time_ns,switch_bytes,egress_queue_bytes_max,ports_paused,pause_frames,ecn_marks,bytes_in_flight_in,"
      "bytes_in_flight_out,credits,messages_queued,calls_outstanding,goodput_bps\n");
  series.add({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}});
  EXPECT_TRUE(series.csv().ends_with("\n1,2,3,4,5,6,7,8,9,10,11,12\n"));
}

}  // namespace
}  // namespace bx::harness
