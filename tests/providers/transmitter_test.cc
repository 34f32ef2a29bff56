// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/transmitter.h"

#include <gtest/gtest.h>

namespace bx::virtual_time {
namespace {

TEST(Transmitter, occupy__starts_at_once_when_idle_and_queues_when_busy) {
  Transmitter transmitter(1'000'000'000);  // one byte a nanosecond
  EXPECT_EQ(transmitter.occupy(Instant{Duration{10}}, 100), Instant{Duration{110}});
  EXPECT_EQ(transmitter.occupy(Instant{Duration{50}}, 100), Instant{Duration{210}});
  EXPECT_EQ(transmitter.occupy(Instant{Duration{500}}, 0), Instant{Duration{500}});
}

TEST(Transmitter, occupy__does_not_drift) {
  Transmitter transmitter(12'500'000'000);  // 0.08 ns a byte
  Instant end{};
  for (int i = 0; i < 100'000; ++i) end = transmitter.occupy(Instant{}, 7);
  EXPECT_EQ(end, Instant{Duration{56'000}});
}

TEST(Transmitter, occupy__takes_the_largest_message_at_the_lowest_rate) {
  Transmitter transmitter(1);
  EXPECT_EQ(transmitter.occupy(Instant{}, 1'000'000'000), Instant{Duration{1'000'000'000'000'000'000}});
}

}  // namespace
}  // namespace bx::virtual_time
