// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/diagnostics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace bx::harness {
namespace {

TEST(diagnostics, text__sorted_by_place_within_each_source) {
  Diagnostics diagnostics;
  EXPECT_TRUE(diagnostics.ok());
  diagnostics.error("a.toml", {7, 1}, "late");
  diagnostics.error("--set x", {}, "nowhere");
  diagnostics.error("a.toml", {2, 5}, "early");
  EXPECT_FALSE(diagnostics.ok());
  EXPECT_EQ(diagnostics.text(),
            "a.toml:2:5: error: early\na.toml:7:1: error: late\n--set x: error: nowhere\n");
}

TEST(diagnostics, error__the_same_mistake_counts_once) {
  Diagnostics diagnostics;
  diagnostics.error("a", {1, 1}, "x");
  diagnostics.error("a", {1, 1}, "x");
  EXPECT_EQ(diagnostics.count(), 1U);
}

TEST(diagnostics, text__at_most_twenty_then_how_many_more) {
  Diagnostics diagnostics;
  for (std::uint32_t i = 1; i <= 25; ++i) diagnostics.error("a", {i, 1}, fmt::format("number {}", i));
  EXPECT_NE(diagnostics.text().find("a:20:1: error: number 20\nand 5 more errors\n"), std::string::npos);
  EXPECT_EQ(diagnostics.text().find("number 21"), std::string::npos);
}

}  // namespace
}  // namespace bx::harness
