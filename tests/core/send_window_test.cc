// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/send_window.h"

#include <gtest/gtest.h>

#include <deque>

#include "tests/support/property.h"

namespace bx::core {
namespace {

TEST(SendWindow, admits__up_to_the_limit_exactly) {
  SendWindow window(100);
  window.on_posted(60);
  EXPECT_TRUE(window.admits(40));
  EXPECT_FALSE(window.admits(41));
  window.on_posted(40);
  EXPECT_TRUE(window.admits(0));
  EXPECT_FALSE(window.admits(1));
}

TEST(SendWindow, admits__anything_when_nothing_is_in_flight) {
  SendWindow window(100);
  EXPECT_TRUE(window.admits(5000));
  window.on_posted(5000);
  EXPECT_FALSE(window.admits(1));
  EXPECT_TRUE(window.admits(0));
  window.on_retired(5000);
  EXPECT_TRUE(window.admits(5000));
}

TEST(SendWindow, admits__everything_without_a_bound) {
  SendWindow window;
  window.on_posted(std::uint64_t{1} << 63U);
  EXPECT_TRUE(window.admits((std::uint64_t{1} << 63U) - 1));
}

TEST(SendWindow, admits__keeps_the_bound_in_any_sequence) {
  test::expect_property([](const std::vector<std::uint16_t>& amounts) {
    const auto limit = *rc::gen::inRange<std::uint64_t>(1, 100'000);
    SendWindow window(limit);
    std::deque<std::uint64_t> posted;
    std::uint64_t total = 0;
    for (const std::uint64_t bytes : amounts) {
      while (!window.admits(bytes)) {
        RC_ASSERT(!posted.empty());  // else nothing could ever be sent
        window.on_retired(posted.front());
        total -= posted.front();
        posted.pop_front();
      }
      window.on_posted(bytes);
      posted.push_back(bytes);
      total += bytes;
      RC_ASSERT(window.in_flight() == total);
      RC_ASSERT((total <= limit || total == bytes));
    }
  });
}

TEST(SendWindowDeathTest, misuse__dies) {
  SendWindow window(10);
  window.on_posted(10);
  EXPECT_DEATH(window.on_posted(1), "window_kept");
  EXPECT_DEATH(window.on_retired(11), "more bytes were retired");
}

}  // namespace
}  // namespace bx::core
