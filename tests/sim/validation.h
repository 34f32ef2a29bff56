// SPDX-License-Identifier: GPL-2.0-only
// A row of the validation table of docs/sim-model.md: what the model gave beside what theory says. The test
// fails outside the tolerance; inside, the figures go into its report, from which scripts/validation writes
// the table.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

namespace bx::sim::testing {

struct ValidationRow {
  std::string_view section;  // rows of one section stand together
  std::string what;          // the case: sizes, rates, counts
  std::string_view against;  // the closed form, table or model, and where it is from
  double expected = 0;
  double measured = 0;
  std::string_view unit;
  double tolerance = 0;  // relative to `expected`; 0 is exact
};

// A test may have several rows.
inline void validate(const ValidationRow& row) {
  EXPECT_LE(std::abs(row.measured - row.expected), row.tolerance * std::abs(row.expected))
      << row.section << ": " << row.what << ": measured " << row.measured << ' ' << row.unit << ", expected "
      << row.expected << " (" << row.against << "), tolerance " << row.tolerance;
  static int rows = 0;
  ::testing::Test::RecordProperty(
      fmt::format("validation_{}", rows++),
      fmt::format("{}|{}|{}|{:.10g}|{:.10g}|{}|{:.6g}", row.section, row.what, row.against, row.expected,
                  row.measured, row.unit, row.tolerance));
}

}  // namespace bx::sim::testing
