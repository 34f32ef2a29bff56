// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/delay_base.h"

#include <gtest/gtest.h>

#include <limits>

namespace bx::core {
namespace {

TEST(DelayBase, on_delay__is_the_least_so_far) {
  DelayBase base;
  EXPECT_FALSE(base.knows(64));
  EXPECT_EQ(base.on_delay(64, Duration(500)), Duration(500));
  EXPECT_TRUE(base.knows(100));
  EXPECT_FALSE(base.knows(1000));
  EXPECT_EQ(base.on_delay(64, Duration(700)), Duration(500));
  EXPECT_EQ(base.on_delay(100, Duration(300)), Duration(300));  // of about the same size
  EXPECT_EQ(base.on_delay(64, Duration(500)), Duration(300));
}

TEST(DelayBase, on_delay__of_another_size_is_its_own) {
  DelayBase base;
  base.on_delay(1000, Duration(100));
  EXPECT_EQ(base.on_delay(65'536, Duration(900)), Duration(900));
  EXPECT_EQ(base.on_delay(0, Duration(50)), Duration(50));
  EXPECT_EQ(base.on_delay(std::numeric_limits<std::uint64_t>::max(), Duration(9999)), Duration(9999));
  EXPECT_EQ(base.on_delay(1000, Duration(200)), Duration(100));
}

}  // namespace
}  // namespace bx::core
