// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/hang_watch.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

Instant at(std::int64_t ns) {
  return Instant{} + Duration(ns);
}

TEST(hang_watch, hung__after_the_window_without_progress) {
  HangWatch watch(100);
  EXPECT_FALSE(watch.hung(at(50), 1, false));
  EXPECT_FALSE(watch.hung(at(149), 1, false));
  EXPECT_TRUE(watch.hung(at(150), 1, false));
  EXPECT_FALSE(watch.hung(at(200), 2, false));
  EXPECT_TRUE(watch.hung(at(300), 2, false));
}

TEST(hang_watch, restart__begins_the_window_anew) {
  HangWatch watch(100);
  watch.restart(at(1000));
  EXPECT_FALSE(watch.hung(at(1099), 0, false));
  EXPECT_TRUE(watch.hung(at(1100), 0, false));
}

TEST(hang_watch, hung__not_while_there_is_an_excuse) {
  HangWatch watch(100);
  EXPECT_FALSE(watch.hung(at(0), 1, false));
  EXPECT_FALSE(watch.hung(at(1000), 1, true));
  EXPECT_FALSE(watch.hung(at(1099), 1, false));
  EXPECT_TRUE(watch.hung(at(1100), 1, false));
}

TEST(hang_watch, hang_window__is_longer_than_an_ack_timeout_and_shorter_than_the_limit) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Settings settings;
  EXPECT_EQ(hang_window_ns(settings, 100 * kSecond), kSecond);
  settings.library.path_ack_timeout = 18;  // 1.07 s
  EXPECT_EQ(hang_window_ns(settings, 100 * kSecond), 4ULL * (4096ULL << 18U));
  settings.library.path_ack_timeout = 31;
  EXPECT_EQ(hang_window_ns(settings, 100 * kSecond), 50 * kSecond);
  settings.measure.hang_ns = 7;
  EXPECT_EQ(hang_window_ns(settings, 100 * kSecond), 7U);
}

}  // namespace
}  // namespace bx::harness
