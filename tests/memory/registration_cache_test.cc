// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/registration_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "libbx/providers/loopback/loopback_fabric.h"

namespace bx::memory {
namespace {

constexpr std::size_t kPage = 4096;

class RegistrationCacheTest : public ::testing::Test, public IdleListener {
 protected:
  RegistrationCacheTest() { make({.bytes_max = 8 * kPage, .regions_max = 4, .page_bytes = kPage}); }
  void make(const RegistrationCache::Limits& limits) {
    cache_.reset();
    cache_ = std::make_unique<RegistrationCache>(host_->device(), *this, limits);
  }
  void on_memory_idle(std::coroutine_handle<> /*awaiting*/) noexcept override { ++idle_; }
  UserMemory acquire(std::span<std::byte> bytes, std::uint64_t generation = 0) {
    auto memory = cache_->acquire(bytes, generation);
    EXPECT_TRUE(memory.has_value());
    cache_->check_invariants();
    return memory ? std::move(*memory) : UserMemory{};
  }
  [[nodiscard]] std::span<std::byte> page(std::size_t number, std::size_t count = 1) {
    return std::span(memory_.bytes).subspan(number * kPage, count * kPage);
  }
  [[nodiscard]] const RegistrationCache::Counters& counters() const { return cache_->counters(); }

  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
  struct alignas(kPage) Pages {
    std::array<std::byte, 16 * kPage> bytes;
  };
  Pages memory_{};
  std::unique_ptr<RegistrationCache> cache_;
  int idle_ = 0;
};

TEST_F(RegistrationCacheTest, acquire__registers_the_pages_that_hold_the_memory) {
  UserMemory memory = acquire(std::span(memory_.bytes).subspan(kPage - 1, 2));
  EXPECT_EQ(counters().bytes, 2 * kPage);
  Buffer buffer = memory.buffer();
  EXPECT_EQ(buffer.data(), &memory_.bytes[kPage - 1]);
  EXPECT_EQ(buffer.size(), 2U);
  EXPECT_EQ(buffer.capacity(), 2U);  // not the rest of the pages
  EXPECT_NE(buffer.lkey(), 0U);
  EXPECT_NE(buffer.lkey(), buffer.rkey());
}

TEST_F(RegistrationCacheTest, acquire__tells_what_is_wrong) {
  EXPECT_EQ(cache_->acquire({}, 0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(cache_->acquire(page(0, 9), 0).error().code, ErrorCode::too_large);
  const UserMemory most = acquire(page(0, 8));
  EXPECT_EQ(cache_->acquire(page(8), 0).error().code, ErrorCode::exhausted);
  EXPECT_EQ(counters().failures, 2U);
}

TEST_F(RegistrationCacheTest, acquire__without_a_generation_is_never_shared_nor_kept) {
  {
    const UserMemory first = acquire(page(0));
    const UserMemory second = acquire(page(0));
    EXPECT_EQ(counters().regions, 2U);
  }
  EXPECT_EQ(counters().regions, 0U);
  EXPECT_EQ(counters().hits, 0U);
}

TEST_F(RegistrationCacheTest, acquire__under_a_generation_is_found_again) {
  std::uint32_t key = 0;
  {
    UserMemory first = acquire(page(0), 7);
    key = first.buffer().lkey();
    UserMemory second = acquire(page(0), 7);  // while it is in use
    EXPECT_EQ(second.buffer().lkey(), key);
  }
  EXPECT_EQ(counters().regions, 1U);
  UserMemory again = acquire(page(0), 7);  // and when it is idle
  EXPECT_EQ(again.buffer().lkey(), key);
  EXPECT_EQ(counters().hits, 2U);
  EXPECT_EQ(counters().misses, 1U);
}

// Freed and mapped again at the same address: what was registered there must not be found.
TEST_F(RegistrationCacheTest, acquire__of_another_generation_at_the_same_address_does_not_hit) {
  acquire(page(0), 1).reset();
  UserMemory later = acquire(page(0), 2);
  EXPECT_EQ(counters().hits, 0U);
  EXPECT_EQ(counters().stale, 1U);
  EXPECT_EQ(counters().regions, 1U);
  later.reset();
  acquire(page(0), 1).reset();  // not even if the earlier word comes back
  EXPECT_EQ(counters().hits, 0U);
}

TEST_F(RegistrationCacheTest, acquire__of_another_generation_ends_all_that_overlap) {
  acquire(page(0, 2), 1).reset();
  acquire(page(1, 2), 1).reset();
  acquire(page(4), 1).reset();
  const UserMemory later = acquire(page(1), 2);
  EXPECT_EQ(counters().stale, 2U);
  EXPECT_EQ(counters().regions, 2U);
}

TEST_F(RegistrationCacheTest, acquire__makes_room_by_ending_what_was_used_least_lately) {
  for (const std::size_t number : {0U, 1U, 2U, 3U}) acquire(page(number), 1).reset();
  acquire(page(0), 1).reset();  // now 1 is the oldest
  acquire(page(5), 1).reset();
  EXPECT_EQ(counters().evictions, 1U);
  EXPECT_EQ(counters().regions, 4U);
  acquire(page(0), 1).reset();
  EXPECT_EQ(counters().hits, 2U);
  acquire(page(1), 1).reset();
  EXPECT_EQ(counters().hits, 2U);
  acquire(page(8, 8), 1).reset();  // by bytes
  EXPECT_EQ(counters().regions, 1U);
  EXPECT_EQ(counters().bytes_peak, 8 * kPage);
}

TEST_F(RegistrationCacheTest, acquire__never_ends_what_is_in_use) {
  std::vector<UserMemory> held;
  for (const std::size_t number : {0U, 1U, 2U, 3U}) held.push_back(acquire(page(number), 1));
  EXPECT_EQ(cache_->acquire(page(4), 1).error().code, ErrorCode::exhausted);
  const Buffer buffer = held[2].buffer();
  held.clear();
  for (const std::size_t number : {4U, 5U, 6U}) acquire(page(number), 1).reset();
  EXPECT_EQ(counters().evictions, 3U);
  EXPECT_NE(buffer.lkey(), 0U);
  acquire(page(2), 1).reset();
  EXPECT_EQ(counters().hits, 1U);
}

TEST_F(RegistrationCacheTest, forget__ends_what_is_idle_now_and_the_rest_when_it_is) {
  acquire(page(0), 1).reset();
  UserMemory used = acquire(page(1), 1);
  Buffer buffer = used.buffer();
  cache_->forget(page(0, 2));
  EXPECT_EQ(counters().regions, 1U);
  acquire(page(1), 1).reset();  // of the same generation, but what is being sent is of the past
  EXPECT_EQ(counters().hits, 0U);
  used.reset();
  EXPECT_EQ(counters().regions, 2U);
  buffer.reset();
  EXPECT_EQ(counters().regions, 1U);
  cache_->check_invariants();
}

TEST_F(RegistrationCacheTest, reclaim__of_the_last_buffer_ends_it_if_no_handle_is_left) {
  UserMemory memory = acquire(page(0));
  Buffer first = memory.buffer(0, 10);
  Buffer second = memory.buffer(5, 10);
  EXPECT_TRUE(memory.in_use());
  memory.reset();
  first.reset();
  EXPECT_EQ(counters().regions, 1U);
  second.reset();
  EXPECT_EQ(counters().regions, 0U);
}

TEST_F(RegistrationCacheTest, wait__is_told_when_the_last_buffer_is_back) {
  UserMemory memory = acquire(page(0));
  EXPECT_TRUE(memory.idle().await_ready());
  Buffer first = memory.buffer();
  Buffer second = memory.buffer();
  MemoryIdleAwaiter waits = memory.idle();
  EXPECT_FALSE(waits.await_ready());
  waits.await_suspend({});
  first.reset();
  EXPECT_EQ(idle_, 0);
  {
    MemoryIdleAwaiter gone = memory.idle();
    gone.await_suspend({});
  }
  second.reset();
  EXPECT_EQ(idle_, 1);
}

using RegistrationCacheDeathTest = RegistrationCacheTest;

TEST_F(RegistrationCacheDeathTest, buffer__beyond_the_memory_dies) {
  UserMemory memory = acquire(page(0));
  EXPECT_DEATH((void)memory.buffer(1, kPage), "beyond the registered memory");
}

TEST_F(RegistrationCacheDeathTest, reclaim__twice_dies) {
  UserMemory memory = acquire(page(0));
  Buffer buffer = memory.buffer();
  engine::Block& block = *buffer.block();
  buffer.reset();
  EXPECT_DEATH(cache_->reclaim(block), "released twice");
}

TEST_F(RegistrationCacheDeathTest, destructor__with_a_handle_left_dies) {
  const UserMemory memory = acquire(page(0));
  EXPECT_DEATH(cache_.reset(), "outlived its worker");
}

}  // namespace
}  // namespace bx::memory
