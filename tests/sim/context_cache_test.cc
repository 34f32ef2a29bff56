// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/context_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "libbx/base/prng.h"

namespace bx::sim {
namespace {

TEST(ContextCache, touch__round_robin_within_the_size_misses_once_each) {
  ContextCache cache(64);
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t key = 1; key <= 64; ++key) EXPECT_EQ(cache.touch(key), round > 0);
  }
  EXPECT_EQ(cache.misses(), 64U);
  EXPECT_EQ(cache.hits(), 4U * 64);
}

TEST(ContextCache, touch__round_robin_past_the_size_misses_always) {
  ContextCache cache(64);
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t key = 1; key <= 65; ++key) EXPECT_FALSE(cache.touch(key));
  }
  EXPECT_EQ(cache.size(), 64U);
}

TEST(ContextCache, touch__without_entries_everything_hits) {
  ContextCache cache(0);
  EXPECT_TRUE(cache.touch(1));
  cache.forget(1);
  EXPECT_EQ(cache.misses() + cache.hits(), 0U);
}

TEST(ContextCache, forget__leaves_room) {
  ContextCache cache(2);
  EXPECT_FALSE(cache.touch(1));
  EXPECT_FALSE(cache.touch(2));
  cache.forget(1);
  cache.forget(7);  // is not there
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_FALSE(cache.touch(3));
  EXPECT_TRUE(cache.touch(2));
  EXPECT_FALSE(cache.touch(1));
}

// Against a list that says the same in the simplest way.
TEST(ContextCache, touch__is_least_recently_used) {
  for (const std::uint32_t entries : {1U, 2U, 7U, 32U}) {
    ContextCache cache(entries);
    std::deque<std::uint64_t> model;  // newest first
    Prng random(entries);
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t key = 1 + random.next() % 48;
      const auto at = std::find(model.begin(), model.end(), key);
      const bool there = at != model.end();
      if (there) model.erase(at);
      if (random.next() % 8 == 0) {
        cache.forget(key);
      } else {
        ASSERT_EQ(cache.touch(key), there) << "entries " << entries << ", step " << step;
        model.push_front(key);
        if (model.size() > entries) model.pop_back();
      }
      ASSERT_EQ(cache.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace bx::sim
