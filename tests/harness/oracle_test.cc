// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/oracle.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

TEST(oracle, breach__kept_by_promise_and_counted_beyond_the_limit) {
  Oracle oracle;
  EXPECT_TRUE(oracle.ok());
  for (std::size_t i = 0; i < Oracle::kDetailsMax + 3; ++i) oracle.breach("a", std::to_string(i));
  oracle.breach("b", "once");
  EXPECT_FALSE(oracle.ok());
  const std::vector<Breach> breaches = oracle.breaches();
  ASSERT_EQ(breaches.size(), Oracle::kDetailsMax + 2);
  EXPECT_EQ(breaches[0].detail, "0");
  EXPECT_EQ(breaches[Oracle::kDetailsMax].detail, "and 3 more");
  EXPECT_EQ(breaches.back().promise, "b");
}

}  // namespace
}  // namespace bx::harness
