// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "libbx/base/prng.h"
#include "tests/support/allocation_guard.h"

namespace bx {
namespace {

TEST(Ring, push_and_pop__are_first_in_first_out) {
  Ring<int> ring(3);
  ring.push(1);
  ring.push(2);
  EXPECT_EQ(ring.pop(), 1);
  ring.push(3);
  ring.push(4);
  EXPECT_TRUE(ring.full());
  EXPECT_EQ(ring.pop(), 2);
  EXPECT_EQ(ring.pop(), 3);
  EXPECT_EQ(ring.pop(), 4);
  EXPECT_TRUE(ring.empty());
}

TEST(Ring, capacity__is_what_was_asked_for_even_if_it_is_no_power_of_two) {
  for (const std::size_t capacity : {1U, 2U, 3U, 5U, 8U, 100U}) {
    Ring<int> ring(capacity);
    EXPECT_EQ(ring.capacity(), capacity);
    for (std::size_t i = 0; i < capacity; ++i) {
      EXPECT_FALSE(ring.full());
      ring.push(static_cast<int>(i));
    }
    EXPECT_TRUE(ring.full());
    EXPECT_EQ(ring.size(), capacity);
  }
}

TEST(Ring, capacity_zero__is_empty_and_full) {
  const Ring<int> made(0);
  EXPECT_TRUE(made.empty());
  EXPECT_TRUE(made.full());
  const Ring<int> unmade;
  EXPECT_TRUE(unmade.empty());
  EXPECT_TRUE(unmade.full());
}

TEST(Ring, index__counts_from_the_front_across_the_end_of_the_array) {
  Ring<int> ring(4);
  for (int i = 0; i < 3; ++i) ring.push(i);
  ring.pop();
  ring.pop();
  for (int i = 3; i < 6; ++i) ring.push(i);
  EXPECT_EQ(ring.front(), 2);
  EXPECT_EQ(ring.back(), 5);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ring[i], static_cast<int>(i) + 2);
  ring[1] = 77;
  ring.pop();
  EXPECT_EQ(ring.pop(), 77);
}

TEST(Ring, push_and_pop__move_move_only_values) {
  Ring<std::unique_ptr<int>> ring(2);
  ring.push(std::make_unique<int>(5));
  EXPECT_EQ(*ring.pop(), 5);
}

TEST(Ring, push_and_pop__behave_like_a_deque) {
  Ring<std::uint64_t> ring(13);
  std::deque<std::uint64_t> model;
  Prng prng(1);
  for (int i = 0; i < 20'000; ++i) {
    if (!ring.full() && prng.chance(0.52)) {
      model.push_back(prng.next());
      ring.push(model.back());
    } else if (!ring.empty()) {
      ASSERT_EQ(ring.pop(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    if (!model.empty()) {
      const std::size_t at = prng.below(model.size());
      ASSERT_EQ(ring[at], model[at]);
    }
  }
}

TEST(Ring, push_and_pop__allocate_nothing) {
  Ring<int> ring(16);
  const test::AllocationCount count;
  for (int i = 0; i < 1000; ++i) {
    ring.push(i);
    ring.pop();
  }
  EXPECT_EQ(count.since(), 0U);
}

TEST(RingDeathTest, misuse__is_a_programming_error) {
  Ring<int> ring(1);
  EXPECT_DEATH(ring.pop(), "empty ring");
  EXPECT_DEATH((void)ring.front(), "past the end");
  ring.push(1);
  EXPECT_DEATH(ring.push(2), "full ring");
  EXPECT_DEATH((void)ring[1], "past the end");
}

}  // namespace
}  // namespace bx
