// SPDX-License-Identifier: BSD-3-Clause
// Shows that the conformance suite notices: against each broken provider the group of the broken point fails,
// and against the same decorator with nothing broken every group passes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/conformance/breakage.h"

namespace bx::conformance {
namespace {

// Runs the tests of a group (a prefix of its name) against one provider; returns the exit status of the
// program, or -1 if it did not exit by itself.
int run_group(const std::string& group, const std::string& provider) {
  std::ostringstream command;
  command << BX_CONFORMANCE_MUTANTS << " --gtest_brief=1 --gtest_filter='contract/" << group << "*/"
          << provider << "' >/dev/null 2>&1";
  const int status = std::system(command.str().c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string point_group(int point) {
  std::string group = "Point";
  group += std::to_string(point);
  return group;
}

class Mutation : public testing::TestWithParam<BreakageName> {};

TEST_P(Mutation, group__of_the_broken_point_fails) {
  // 1 is the status of a GoogleTest program with failed tests; a crash or an unknown filter would be another.
  EXPECT_EQ(run_group(GetParam().group, GetParam().name), 1);
}

INSTANTIATE_TEST_SUITE_P(breakage, Mutation, testing::ValuesIn(kBreakages),
                         [](const auto& tested) { return std::string(tested.param.name); });

class Intact : public testing::TestWithParam<int> {};

TEST_P(Intact, group__passes_when_nothing_is_broken) {
  EXPECT_EQ(run_group(point_group(GetParam()), "intact"), 0);
}

INSTANTIATE_TEST_SUITE_P(point, Intact, testing::Range(1, 10));

// Every contract point has a breakage.
TEST(Breakages, cover__all_nine_points) {
  for (int point = 1; point <= 9; ++point) {
    const std::string group = point_group(point);
    bool covered = false;
    for (const BreakageName& one : kBreakages) covered = covered || group == one.group;
    EXPECT_TRUE(covered) << group;
  }
}

}  // namespace
}  // namespace bx::conformance
