// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/page_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace bx::sim {
namespace {

std::size_t misalignment(const void* memory, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignment;
}

TEST(PageArray, data__from_a_huge_page_on_begins_with_one) {
  constexpr std::size_t kCount = kHugePageBytes / sizeof(std::uint64_t);
  PageArray<std::uint64_t> array(kCount);
  EXPECT_EQ(misalignment(array.data(), kHugePageBytes), 0U);
  for (std::size_t i = 0; i < kCount; ++i) array.data()[i] = i;
  EXPECT_EQ(array.data()[kCount - 1], kCount - 1);
}

TEST(PageArray, data__a_small_one_begins_with_a_cache_line) {
  PageArray<std::uint64_t> array(3);
  array.data()[2] = 7;
  EXPECT_EQ(misalignment(array.data(), 64), 0U);
  EXPECT_EQ(array.data()[2], 7U);
}

TEST(PageArray, move__takes_the_memory_along) {
  PageArray<std::uint64_t> array(1);
  const std::uint64_t* memory = array.data();
  const PageArray<std::uint64_t> other = std::move(array);
  EXPECT_EQ(other.data(), memory);
}

}  // namespace
}  // namespace bx::sim
