// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/parts_stats.h"

#include <gtest/gtest.h>

namespace bx::engine {
namespace {

constexpr Instant at(std::int64_t ns) {
  return Instant(Duration(ns));
}

TEST(StallClock, leave__adds_the_time_to_what_was_lacking) {
  StallClock clock;
  clock.enter(StallReason::credit, at(100));
  clock.leave(at(150));
  clock.enter(StallReason::window, at(200));
  clock.leave(at(207));
  EXPECT_EQ(clock.time(StallReason::credit, at(999)), Duration(50));
  EXPECT_EQ(clock.time(StallReason::window, at(999)), Duration(7));
  EXPECT_EQ(clock.time(StallReason::slot, at(999)), Duration(0));
  EXPECT_EQ(clock.reason(), StallReason::none);
}

TEST(StallClock, enter__again_keeps_the_beginning) {
  StallClock clock;
  clock.enter(StallReason::slot, at(10));
  clock.enter(StallReason::slot, at(20));
  EXPECT_EQ(clock.since(), at(10));
  clock.leave(at(30));
  EXPECT_EQ(clock.time(StallReason::slot, at(30)), Duration(20));
}

TEST(StallClock, enter__of_another_reason_ends_the_first) {
  StallClock clock;
  clock.enter(StallReason::slot, at(10));
  clock.enter(StallReason::credit, at(25));
  EXPECT_EQ(clock.time(StallReason::slot, at(100)), Duration(15));
  EXPECT_EQ(clock.time(StallReason::credit, at(100)), Duration(75));
}

TEST(StallClock, leave__without_a_stall_changes_nothing) {
  StallClock clock;
  clock.leave(at(10));
  for (const StallReason reason : {StallReason::credit, StallReason::slot, StallReason::window}) {
    EXPECT_EQ(clock.time(reason, at(20)), Duration(0));
  }
}

}  // namespace
}  // namespace bx::engine
