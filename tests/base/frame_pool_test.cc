// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/base/frame_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/allocation_guard.h"

namespace bx {
namespace {

TEST(FramePool, allocate__gives_aligned_writable_memory_of_every_size) {
  FramePool pool;
  for (std::size_t size = 1; size <= 3000; size += 37) {
    void* frame = FramePool::allocate(&pool, size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame) % 16, 0U);
    std::memset(frame, 0x5a, size);
    FramePool::deallocate(frame, size);
  }
}

TEST(FramePool, allocate__reuses_what_came_back_without_allocating) {
  FramePool pool;
  void* first = FramePool::allocate(&pool, 100);
  FramePool::deallocate(first, 100);
  const test::AllocationCount count;
  for (int i = 0; i < 100; ++i) {
    void* frame = FramePool::allocate(&pool, 90);  // the same class of 65 to 128 bytes
    EXPECT_EQ(frame, first);
    FramePool::deallocate(frame, 90);
  }
  EXPECT_EQ(count.since(), 0U);
}

TEST(FramePool, allocate__keeps_the_classes_apart) {
  FramePool pool;
  void* small = FramePool::allocate(&pool, 64);
  FramePool::deallocate(small, 64);
  void* large = FramePool::allocate(&pool, 65);
  EXPECT_NE(large, small);
  std::memset(large, 1, 65);
  FramePool::deallocate(large, 65);
}

TEST(FramePool, allocate__without_a_pool_works) {
  void* frame = FramePool::allocate(nullptr, 40);
  std::memset(frame, 1, 40);
  FramePool::deallocate(frame, 40);
}

TEST(FramePool, allocate__of_a_frame_larger_than_the_classes_works) {
  FramePool pool;
  const std::size_t size = FramePool::kClasses * FramePool::kStep + 1;
  void* frame = FramePool::allocate(&pool, size);
  std::memset(frame, 1, size);
  FramePool::deallocate(frame, size);
}

TEST(FramePoolDeathTest, destruction__with_a_frame_outside_is_a_programming_error) {
  EXPECT_DEATH(
      {
        FramePool pool;
        FramePool::allocate(&pool, 10);
      },
      "frame pool");
}

}  // namespace
}  // namespace bx
