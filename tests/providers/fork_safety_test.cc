// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/fork_safety.h"

#include <gtest/gtest.h>

namespace bx::verbs {
namespace {

TEST(ForkSafety, copies_registered_pages__from_5_12_on) {
  EXPECT_TRUE(copies_registered_pages("6.1.0-57-amd64"));
  EXPECT_TRUE(copies_registered_pages("5.12.0"));
  EXPECT_TRUE(copies_registered_pages("10.0"));
  EXPECT_FALSE(copies_registered_pages("5.11.22"));
  EXPECT_FALSE(copies_registered_pages("4.18.0-553.el8_10.x86_64"));
}

TEST(ForkSafety, copies_registered_pages__says_no_if_it_cannot_tell) {
  EXPECT_FALSE(copies_registered_pages(""));
  EXPECT_FALSE(copies_registered_pages("6"));
  EXPECT_FALSE(copies_registered_pages("six.one"));
}

}  // namespace
}  // namespace bx::verbs
