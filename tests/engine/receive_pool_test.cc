// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/receive_pool.h"

#include <set>

#include "tests/engine/world.h"

namespace bx::engine {
namespace {

class ReceivePoolTest : public ::testing::Test, public SlotListener {
 protected:
  void on_slot_free(std::uint32_t /*slot*/) noexcept override { ++freed_; }
  void make(const ReceivePool::Limits& limits, std::uint64_t memory = 16U << 20U) {
    pool_.reset();
    arena_ = std::move(*memory::Arena::create(host_->device(), system_, {.bytes = memory}));
    pool_ = std::move(*ReceivePool::create(host_->device(), *arena_, limits));
    pool_->set_listener(this);
  }
  memory::LinuxMemory system_;
  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
  std::unique_ptr<memory::Arena> arena_;
  std::unique_ptr<ReceivePool> pool_;
  int freed_ = 0;
};

constexpr ReceivePool::Limits kSmall{.slots_max = 10, .slot_bytes = 512, .spare = 2};

TEST_F(ReceivePoolTest, reserve__up_to_the_limit_less_the_spare) {
  make(kSmall);
  EXPECT_FALSE(pool_->post());  // nothing there yet
  EXPECT_TRUE(pool_->reserve(5, 5).has_value());
  EXPECT_TRUE(pool_->reserve(3, 8).has_value());
  EXPECT_EQ(pool_->reserve(1, 9).error().code, ErrorCode::exhausted);
  pool_->unreserve(4);
  EXPECT_TRUE(pool_->reserve(4, 8).has_value());
}

TEST_F(ReceivePoolTest, reserve__takes_memory_and_fails_without_a_trace_if_there_is_none) {
  make({.slots_max = 1000, .slot_bytes = 1U << 20U, .spare = 0}, 8U << 20U);
  EXPECT_TRUE(pool_->reserve(4, 4).has_value());
  EXPECT_EQ(pool_->reserve(100, 104).error().code, ErrorCode::exhausted);
  EXPECT_TRUE(pool_->reserve(2, 6).has_value());
}

TEST_F(ReceivePoolTest, post__every_slot_once_and_each_apart) {
  make(kSmall);
  ASSERT_TRUE(pool_->reserve(8, 8).has_value());
  for (std::uint32_t i = 1; i <= 10; ++i) {
    EXPECT_TRUE(pool_->post());
    EXPECT_EQ(pool_->posted(), i);
  }
  EXPECT_FALSE(pool_->post());
  const auto flushed = pool_->flush();
  EXPECT_EQ(flushed.receives, 10U);
  EXPECT_EQ(flushed.doorbells, 1U);
  EXPECT_EQ(pool_->flush().doorbells, 0U);
  std::set<const std::byte*> places;
  for (std::uint32_t slot = 0; slot < 10; ++slot) {
    const auto bytes = pool_->consumed(slot, 600);
    EXPECT_EQ(bytes.size(), 512U);  // never more than the slot, whatever the completion says
    places.insert(bytes.data());
    pool_->release(slot);
  }
  EXPECT_EQ(places.size(), 10U);
  EXPECT_EQ(freed_, 10);
  EXPECT_EQ(pool_->posted(), 0U);
}

TEST_F(ReceivePoolTest, lend__keeps_the_slot_until_the_buffer_goes) {
  make(kSmall);
  ASSERT_TRUE(pool_->reserve(8, 8).has_value());
  while (pool_->post()) continue;
  (void)pool_->flush();
  const auto bytes = pool_->consumed(3, 100);
  {
    Buffer buffer = pool_->lend(3, 28, 72);
    EXPECT_EQ(buffer.data(), bytes.data() + 28);
    EXPECT_EQ(buffer.size(), 72U);
    EXPECT_EQ(buffer.capacity(), 512U - 28U);
    EXPECT_EQ(pool_->lent(), 1U);
    EXPECT_FALSE(pool_->post());
    EXPECT_EQ(freed_, 0);
  }
  EXPECT_EQ(pool_->lent(), 0U);
  EXPECT_EQ(freed_, 1);
  EXPECT_TRUE(pool_->post());
}

TEST_F(ReceivePoolTest, scarce__when_three_quarters_of_the_spare_are_kept) {
  for (const auto& [spare, lendable] :
       std::vector<std::pair<std::uint32_t, std::uint32_t>>{{8, 6}, {2, 2}, {1, 1}, {0, 0}}) {
    SCOPED_TRACE(spare);
    make({.slots_max = 20, .slot_bytes = 512, .spare = spare});
    ASSERT_TRUE(pool_->reserve(12, 12).has_value());
    while (pool_->post()) continue;
    (void)pool_->flush();
    for (std::uint32_t slot = 0; slot < lendable; ++slot) {
      (void)pool_->consumed(slot, 512);
      EXPECT_FALSE(pool_->scarce()) << slot;
    }
    (void)pool_->consumed(lendable, 512);
    EXPECT_TRUE(pool_->scarce());
  }
}

// The application may keep what it is lent beyond the end of the peer it came from; a newcomer is then told
// that there are no receives for it, instead of being promised some.
TEST_F(ReceivePoolTest, reserve__does_not_count_on_slots_that_are_lent) {
  make({.slots_max = 8, .slot_bytes = 512, .spare = 0});
  ASSERT_TRUE(pool_->reserve(4, 4).has_value());
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(pool_->post());
  (void)pool_->flush();
  std::vector<Buffer> kept;
  for (std::uint32_t slot = 0; slot < 6; ++slot) {
    (void)pool_->consumed(slot, 512);
    kept.push_back(pool_->lend(slot, 0, 512));
  }
  pool_->unreserve(4);
  EXPECT_TRUE(pool_->reserve(2, 2).has_value());  // two are still posted
  EXPECT_EQ(pool_->reserve(1, 3).error().code, ErrorCode::exhausted);
  kept.pop_back();
  EXPECT_TRUE(pool_->reserve(1, 3).has_value());
  kept.clear();
}

using ReceivePoolDeathTest = ReceivePoolTest;

TEST_F(ReceivePoolDeathTest, consumed__of_what_is_not_posted_dies) {
  make(kSmall);
  ASSERT_TRUE(pool_->reserve(1, 1).has_value());
  EXPECT_DEATH((void)pool_->consumed(0, 1), "not posted");
  ASSERT_TRUE(pool_->post());
  EXPECT_DEATH((void)pool_->consumed(10, 1), "not posted");
}

TEST_F(ReceivePoolDeathTest, destructor__with_a_slot_lent_dies) {
  make(kSmall);
  ASSERT_TRUE(pool_->reserve(1, 1).has_value());
  ASSERT_TRUE(pool_->post());
  (void)pool_->flush();
  (void)pool_->consumed(0, 10);
  const Buffer kept = pool_->lend(0, 0, 10);
  EXPECT_DEATH(pool_.reset(), "outlived its worker");
}

TEST_F(ReceivePoolTest, lend__several_parts_free_the_slot_together) {
  make(kSmall);
  ASSERT_TRUE(pool_->reserve(8, 8).has_value());
  ASSERT_TRUE(pool_->post());
  pool_->flush();
  static_cast<void>(pool_->consumed(9, 100));  // a stack: the slot made last
  pool_->hold(9);
  pool_->share(9);
  Buffer first = pool_->lend(9, 16, 20);
  Buffer second = pool_->lend(9, 40, 20);
  EXPECT_EQ(first.capacity(), 20U);
  EXPECT_FALSE(pool_->let_go(9));
  first.reset();
  EXPECT_EQ(freed_, 0);
  EXPECT_EQ(pool_->kept(), 1U);
  second.reset();
  EXPECT_EQ(freed_, 1);
  EXPECT_EQ(pool_->kept(), 0U);
  EXPECT_EQ(pool_->lent(), 0U);
  ASSERT_TRUE(pool_->post());
  static_cast<void>(pool_->consumed(9, 100));
  EXPECT_EQ(pool_->lend(9, 16, 20).capacity(), 512U - 16);  // its own again
}

TEST_F(ReceivePoolTest, let_go__says_whether_it_was_the_last) {
  make(kSmall);
  ASSERT_TRUE(pool_->reserve(8, 8).has_value());
  ASSERT_TRUE(pool_->post());
  static_cast<void>(pool_->consumed(9, 100));
  pool_->hold(9);
  pool_->lend(9, 0, 10).reset();
  EXPECT_EQ(freed_, 0);
  EXPECT_TRUE(pool_->let_go(9));
  pool_->release(9);
  EXPECT_EQ(freed_, 1);
}

}  // namespace
}  // namespace bx::engine
