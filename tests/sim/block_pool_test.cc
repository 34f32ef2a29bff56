// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/block_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

namespace bx::sim {
namespace {

TEST(block_pool, take__the_block_given_back_last_comes_first) {
  BlockPool pool;
  void* a = pool.take(1000);
  void* b = pool.take(1000);
  EXPECT_NE(a, b);
  pool.give(a, 1000);
  EXPECT_EQ(pool.take(513), a) << "1000 and 513 bytes are blocks of 1024";
  void* c = pool.take(512);
  EXPECT_NE(c, a);
  EXPECT_EQ(pool.in_use(), 3U);
  pool.give(a, 513);
  pool.give(b, 1000);
  pool.give(c, 512);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(block_pool, take__blocks_do_not_overlap) {
  BlockPool pool;
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(pool.take(300));
    std::memset(blocks.back(), i % 251, 300);
  }
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(static_cast<unsigned char*>(blocks[static_cast<std::size_t>(i)])[299], i % 251);
  }
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 1000U);
  for (void* block : blocks) pool.give(block, 300);
}

TEST(block_pool, destructor__notices_what_was_not_given_back) {
  EXPECT_DEATH(
      {
        BlockPool pool;
        (void)pool.take(1);
      },
      "before its blocks were given back");
}

}  // namespace
}  // namespace bx::sim
