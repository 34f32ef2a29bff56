// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/result.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace bx {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::invalid_argument, ErrorScope::operation, "odd", 33);
  return value / 2;
}

TEST(Result, value__comes_through) {
  const Result<int> result = half(8);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, 4);
}

TEST(Result, fail__carries_code_scope_detail_and_errno) {
  const Result<int> result = half(7);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(result.error().scope, ErrorScope::operation);
  EXPECT_EQ(result.error().sys, 33);
  EXPECT_STREQ(result.error().detail, "odd");
}

TEST(Error, equality__does_not_look_at_the_detail) {
  const Error a{ErrorCode::device, ErrorScope::device, 5, "one"};
  Error b{ErrorCode::device, ErrorScope::device, 5, "two"};
  EXPECT_EQ(a, b);
  b.sys = 6;
  EXPECT_FALSE(a == b);
}

TEST(ToString, names__are_distinct_and_known) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    const auto name = to_string(static_cast<ErrorCode>(code));
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  for (int scope = 0; scope <= static_cast<int>(ErrorScope::device); ++scope) {
    EXPECT_FALSE(to_string(static_cast<ErrorScope>(scope)).empty());
  }
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace bx
