// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/page_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace bx::sim {
namespace {

TEST(PageArena, take__gives_memory_of_its_own_that_begins_with_a_cache_line) {
  PageArena arena;
  std::vector<std::pair<std::uintptr_t, std::size_t>> taken;
  // Among them more than is left of a chunk, more than a huge page, and nothing.
  for (const std::size_t bytes : {1UL, 64UL, 65UL, 60'000UL, 40'000UL, 5'000'000UL, 0UL, 128UL}) {
    std::byte* const memory = arena.take(bytes);
    std::memset(memory, 0xff, bytes);
    taken.emplace_back(reinterpret_cast<std::uintptr_t>(memory), bytes);
    EXPECT_EQ(taken.back().first % 64, 0U);
  }
  std::sort(taken.begin(), taken.end());
  for (std::size_t i = 1; i < taken.size(); ++i) {
    EXPECT_LE(taken[i - 1].first + taken[i - 1].second, taken[i].first);
  }
}

TEST(PageArena, take__what_fits_follows_the_last) {
  PageArena arena;
  std::byte* const first = arena.take(100);
  EXPECT_EQ(arena.take(64), first + 128);
  EXPECT_EQ(arena.take(1), first + 192);
}

}  // namespace
}  // namespace bx::sim
