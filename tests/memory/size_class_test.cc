// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/size_class.h"

#include <gtest/gtest.h>

namespace bx::memory {
namespace {

TEST(SizeClass, class_of__is_the_smallest_that_holds_the_size) {
  for (std::size_t size = 1; size <= kPieceMax; size += 1 + size / 64) {
    const std::size_t of = class_of(size);
    ASSERT_LT(of, kPieceClasses);
    ASSERT_GE(class_bytes(of), size);
    ASSERT_TRUE(of == 0 || class_bytes(of - 1) < size) << size;
  }
  EXPECT_EQ(class_of(kPieceMax), kPieceClasses - 1);
}

TEST(SizeClass, class_of__nothing_and_long_sizes_have_no_piece) {
  for (const std::size_t size : {std::size_t{0}, kPieceMax + 1, kChunkBytes, std::size_t{1} << 63U}) {
    EXPECT_GE(class_of(size), kPieceClasses) << size;
    EXPECT_LT(class_of(size), kOpenClasses) << size;
  }
}

TEST(SizeClass, run_class_chunks__powers_of_two_up_to_32_mib_then_what_it_takes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  EXPECT_EQ(run_class_chunks(3 * kMiB), 1U);
  EXPECT_EQ(run_class_chunks(4 * kMiB + 1), 2U);
  EXPECT_EQ(run_class_chunks(9 * kMiB), 4U);
  EXPECT_EQ(run_class_chunks(17 * kMiB), 8U);
  EXPECT_EQ(run_class_chunks(32 * kMiB), 8U);
  EXPECT_EQ(run_class_chunks(32 * kMiB + 1), 9U);
  EXPECT_EQ(run_class_chunks(100 * kMiB), 25U);
}

}  // namespace
}  // namespace bx::memory
