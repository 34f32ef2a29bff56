// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/check.h"

#include <gtest/gtest.h>

namespace bx {
namespace {

TEST(Check, check__of_something_true_does_nothing_and_evaluates_once) {
  int evaluated = 0;
  BX_CHECK(++evaluated == 1, "it is one");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, check__of_something_false_names_place_expression_and_reason) {
  EXPECT_DEATH(BX_CHECK(1 + 1 == 3, "sums are sums"),
               "check_test.cc:[0-9]+: check failed: 1 \\+ 1 == 3: sums are sums");
}

}  // namespace
}  // namespace bx
