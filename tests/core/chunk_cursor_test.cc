// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/chunk_cursor.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/property.h"

namespace bx::core {
namespace {

TEST(ChunkCursor, issue__covers_the_length_once_and_in_order) {
  test::expect_property([] {
    const auto length = *rc::gen::inRange<std::uint64_t>(1, 5000);
    const auto chunk = *rc::gen::inRange<std::uint64_t>(1, 700);
    ChunkCursor cursor(length, chunk);
    std::uint64_t next = 0;
    while (!cursor.all_issued()) {
      const std::uint64_t announced = cursor.next_length();
      const ChunkCursor::Chunk part = cursor.issue();
      RC_ASSERT((part.offset == next && part.length == announced));
      RC_ASSERT((part.length > 0 && part.length <= chunk));
      next += part.length;
      RC_ASSERT((part.length == chunk || next == length));  // only the last one is shorter
    }
    RC_ASSERT((next == length && cursor.outstanding() == length && !cursor.settled()));
  });
}

TEST(ChunkCursor, lengths__around_32_bits_are_covered_to_the_byte) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 20U;
  for (const unsigned bits : {31U, 32U}) {
    for (const std::uint64_t length :
         {(std::uint64_t{1} << bits) - 1, std::uint64_t{1} << bits, (std::uint64_t{1} << bits) + 1}) {
      ChunkCursor cursor(length, kChunk);
      std::uint64_t covered = 0;
      while (!cursor.all_issued()) {
        const ChunkCursor::Chunk part = cursor.issue();
        ASSERT_EQ(part.offset, covered);
        covered += part.length;
        cursor.on_done(part.length);
      }
      EXPECT_EQ(covered, length);
      EXPECT_TRUE(cursor.settled());
    }
  }
}

TEST(ChunkCursor, on_done__settles_when_all_parts_are_there_in_any_order) {
  ChunkCursor cursor(10, 4);
  const auto first = cursor.issue();
  const auto second = cursor.issue();
  cursor.on_done(second.length);
  EXPECT_FALSE(cursor.settled());
  const auto third = cursor.issue();
  EXPECT_EQ(third.length, 2U);
  cursor.on_done(third.length);
  EXPECT_FALSE(cursor.settled());
  EXPECT_EQ(cursor.outstanding(), 4U);
  cursor.on_done(first.length);
  EXPECT_TRUE(cursor.settled());
}

TEST(ChunkCursor, stop__leaves_only_what_is_outstanding) {
  ChunkCursor cursor(100, 10);
  cursor.issue();
  cursor.stop();
  EXPECT_TRUE(cursor.all_issued());
  EXPECT_TRUE(cursor.stopped());
  EXPECT_FALSE(cursor.settled());
  cursor.on_done(10);
  EXPECT_TRUE(cursor.settled());
}

TEST(ChunkCursor, stop__before_anything_was_asked_for_settles_at_once) {
  ChunkCursor cursor(100, 10);
  EXPECT_FALSE(cursor.settled());
  cursor.stop();
  EXPECT_TRUE(cursor.settled());
}

TEST(ChunkCursorDeathTest, misuse__dies) {
  EXPECT_DEATH(ChunkCursor(1, 0), "at least one byte");
  ChunkCursor cursor(8, 8);
  EXPECT_DEATH(cursor.on_done(1), "more than was asked for");
  cursor.issue();
  EXPECT_DEATH(cursor.issue(), "more than its length");
  EXPECT_DEATH(cursor.on_done(9), "more than was asked for");
}

}  // namespace
}  // namespace bx::core
