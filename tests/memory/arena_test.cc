// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/memory/fake_memory.h"

namespace bx::memory {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

class ArenaTest : public ::testing::Test {
 protected:
  std::unique_ptr<Arena> make(std::uint64_t bytes, std::array<std::uint64_t, kSides> quota = {}) {
    auto arena = Arena::create(host_->device(), system_, {.bytes = bytes, .quota = quota});
    EXPECT_TRUE(arena.has_value());
    return std::move(*arena);
  }
  LinuxMemory system_;
  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
};

TEST_F(ArenaTest, create__rounds_up_to_whole_chunks) {
  EXPECT_EQ(make(1)->capacity(), kChunkBytes);
  EXPECT_EQ(make(kChunkBytes + 1)->capacity(), 2 * kChunkBytes);
}

TEST_F(ArenaTest, create__gives_back_every_mapping_when_it_fails) {
  FakeMemory system;
  system.ordinary = false;
  EXPECT_EQ(Arena::create(host_->device(), system, {.bytes = kMiB}).error().code, ErrorCode::exhausted);
  const ArenaConfig huge{.bytes = kMiB, .pages = {.huge_pages = HugePages::require}};
  EXPECT_EQ(Arena::create(host_->device(), system, huge).error().code, ErrorCode::exhausted);  // its tables
  EXPECT_EQ(system.mapped, 0);
  system.ordinary = true;
  {
    const auto arena = Arena::create(host_->device(), system, huge);
    ASSERT_TRUE(arena.has_value());
    EXPECT_EQ((*arena)->page_kind(), PageKind::huge);
    EXPECT_EQ(system.mapped, 2);
  }
  EXPECT_EQ(system.mapped, 0);
}

// Whole pages, huge ones too: what the NIC pins holds nothing but the arena.
TEST_F(ArenaTest, create__registers_whole_pages) {
  auto arena = make(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena->bytes().data()) % kHugePageBytes, 0U);
  EXPECT_EQ(arena->bytes().size() % kHugePageBytes, 0U);
}

TEST_F(ArenaTest, allocate__nothing_is_empty_and_free) {
  auto arena = make(1);
  EXPECT_EQ(arena->allocate(0)->capacity(), 0U);
  EXPECT_EQ(arena->bytes_in_use(), 0U);
}

TEST_F(ArenaTest, allocate__rounds_up_to_the_size_class) {
  auto arena = make(8 * kMiB);
  for (const auto& [size, capacity] : std::map<std::size_t, std::size_t>{{1, 64},
                                                                         {64, 64},
                                                                         {65, 128},
                                                                         {256, 256},
                                                                         {257, 512},
                                                                         {4096, 4096},
                                                                         {4097, 8192},
                                                                         {2 * kMiB, 2 * kMiB},
                                                                         {2 * kMiB + 1, 4 * kMiB},
                                                                         {4 * kMiB + 1, 8 * kMiB}}) {
    const Buffer buffer = arena->allocate(size).value();
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.capacity(), capacity) << size;
    EXPECT_EQ(arena->bytes_in_use(), capacity);
    arena->check_invariants();
  }
  EXPECT_EQ(arena->bytes_in_use(), 0U);
  EXPECT_EQ(arena->bytes_in_use_peak(), 8 * kMiB);
}

TEST_F(ArenaTest, allocate__gives_registered_memory) {
  auto arena = make(1);
  const Buffer buffer = arena->allocate(1000).value();
  EXPECT_NE(buffer.lkey(), 0U);
  EXPECT_NE(buffer.rkey(), buffer.lkey());
}

TEST_F(ArenaTest, allocate__tells_too_large_from_exhausted) {
  auto arena = make(8 * kMiB);
  EXPECT_EQ(arena->allocate(8 * kMiB + 1).error().code, ErrorCode::too_large);
  const Buffer small = arena->allocate(1).value();
  EXPECT_EQ(arena->allocate(8 * kMiB).error().code, ErrorCode::exhausted);
  const Buffer rest = arena->allocate(4 * kMiB).value();
  EXPECT_EQ(arena->allocate(300).error().code,
            ErrorCode::exhausted);  // another class needs a chunk of its own
  EXPECT_TRUE(arena->allocate(60).has_value());
}

TEST_F(ArenaTest, allocate__uses_every_piece_of_a_chunk_once) {
  auto arena = make(1);
  for (const std::size_t size : {std::size_t{64}, std::size_t{8192}, 2 * kMiB}) {
    std::vector<Buffer> pieces;
    std::vector<const std::byte*> places;
    for (auto piece = arena->allocate(size); piece; piece = arena->allocate(size)) {
      places.push_back(piece->data());
      pieces.push_back(std::move(*piece));
    }
    EXPECT_EQ(pieces.size(), kChunkBytes / size);
    std::ranges::sort(places);
    EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
    arena->check_invariants();
  }
  EXPECT_EQ(arena->bytes_in_use(), 0U);
}

TEST_F(ArenaTest, allocate__rounds_runs_to_their_class_while_there_is_plenty) {
  auto arena = make(64 * kMiB);
  const Buffer first = arena->allocate(9 * kMiB).value();
  EXPECT_EQ(first.capacity(), 16 * kMiB);
  const Buffer second = arena->allocate(9 * kMiB).value();
  EXPECT_EQ(second.capacity(), 16 * kMiB);
  const Buffer third = arena->allocate(9 * kMiB).value();  // half of the quota is taken
  EXPECT_EQ(third.capacity(), 12 * kMiB);
  EXPECT_EQ(arena->allocate(21 * kMiB).error().code, ErrorCode::exhausted);
  EXPECT_EQ(make(256 * kMiB)->allocate(17 * kMiB)->capacity(), 32 * kMiB);
  EXPECT_EQ(make(256 * kMiB)->allocate(33 * kMiB)->capacity(), 36 * kMiB);
}

TEST_F(ArenaTest, quota__bounds_a_side_whatever_is_free) {
  auto arena = make(16 * kMiB, {12 * kMiB, 8 * kMiB});
  EXPECT_EQ(arena->allocate(13 * kMiB).error().code, ErrorCode::too_large);
  const Buffer sent = arena->allocate(12 * kMiB).value();
  EXPECT_EQ(arena->allocate(1).error().code, ErrorCode::exhausted);
  EXPECT_EQ(arena->allocate(8 * kMiB, Side::receive).error().code, ErrorCode::exhausted);
  const Buffer received = arena->allocate(4 * kMiB, Side::receive).value();
  const SideUsage send = arena->usage(Side::send);
  EXPECT_EQ(send.bytes, 12 * kMiB);
  EXPECT_EQ(send.buffers, 1U);
  EXPECT_EQ(send.bytes_peak, 12 * kMiB);
  EXPECT_EQ(send.quota, 12 * kMiB);
  EXPECT_EQ(send.failures, 2U);
  EXPECT_EQ(arena->usage(Side::receive).failures, 1U);
  arena->check_invariants();
}

// What is idle counts to its side until somebody needs it; a side at its quota gives up its own first.
TEST_F(ArenaTest, quota__of_idle_chunks_is_reclaimed_for_other_classes) {
  auto arena = make(16 * kMiB, {8 * kMiB, 16 * kMiB});
  { const std::array<Buffer, 2> idle{arena->allocate(64).value(), arena->allocate(4096).value()}; }
  EXPECT_EQ(arena->reclaims(), 0U);
  { const Buffer third = arena->allocate(512).value(); }
  EXPECT_EQ(arena->reclaims(), 1U);
  const Buffer run = arena->allocate(8 * kMiB).value();
  EXPECT_EQ(arena->reclaims(), 3U);
  arena->check_invariants();
}

TEST_F(ArenaTest, quota__of_one_side_takes_idle_chunks_of_the_other) {
  auto arena = make(8 * kMiB, {8 * kMiB, 8 * kMiB});
  { const std::array<Buffer, 2> idle{arena->allocate(64).value(), arena->allocate(4096).value()}; }
  const Buffer received = arena->allocate(8 * kMiB, Side::receive).value();
  EXPECT_EQ(arena->usage(Side::receive).bytes, 8 * kMiB);
  EXPECT_EQ(arena->allocate(64).error().code, ErrorCode::exhausted);
  arena->check_invariants();
}

TEST_F(ArenaTest, reclaim__lets_a_chunk_serve_another_class) {
  auto arena = make(1);
  {
    std::vector<Buffer> pieces;
    for (int i = 0; i < 100; ++i) pieces.push_back(arena->allocate(256).value());
    EXPECT_FALSE(arena->allocate(kChunkBytes).has_value());
  }
  { const Buffer whole = arena->allocate(kChunkBytes).value(); }
  EXPECT_TRUE(arena->allocate(2 * kMiB).has_value());
}

TEST_F(ArenaTest, reclaim__joins_chunks_to_runs) {
  auto arena = make(16 * kMiB);
  std::vector<Buffer> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back(arena->allocate(4 * kMiB).value());
  chunks[0] = Buffer{};
  chunks[2] = Buffer{};
  EXPECT_FALSE(arena->allocate(8 * kMiB).has_value());  // two, but apart
  chunks[1] = Buffer{};
  EXPECT_TRUE(arena->allocate(12 * kMiB).has_value());
}

TEST_F(ArenaTest, could_hold__is_bounded_by_the_quota_and_what_is_pinned_of_it) {
  auto arena = make(16 * kMiB, {12 * kMiB, 12 * kMiB});
  EXPECT_TRUE(arena->could_hold(12 * kMiB));
  EXPECT_FALSE(arena->could_hold(13 * kMiB));
  const Buffer own = arena->allocate_pinned(1000, Side::send).value();
  EXPECT_FALSE(arena->could_hold(12 * kMiB));
  EXPECT_TRUE(arena->could_hold(8 * kMiB));
  EXPECT_TRUE(arena->could_hold(12 * kMiB, Side::receive));
  EXPECT_FALSE(arena->could_hold(13 * kMiB, Side::receive));
}

TEST_F(ArenaTest, could_hold__counts_on_everything_that_is_not_pinned) {
  auto arena = make(12 * kMiB);
  EXPECT_TRUE(arena->could_hold(12 * kMiB));
  EXPECT_FALSE(arena->could_hold(12 * kMiB + 1));
  const Buffer held = arena->allocate(12 * kMiB).value();
  EXPECT_TRUE(arena->could_hold(12 * kMiB));
}

TEST_F(ArenaTest, could_hold__sees_pinned_pieces_and_runs) {
  auto arena = make(12 * kMiB);
  Buffer piece = arena->allocate_pinned(1000, Side::send).value();
  EXPECT_TRUE(arena->could_hold(8 * kMiB));
  EXPECT_FALSE(arena->could_hold(8 * kMiB + 1));
  Buffer run = arena->allocate_pinned(8 * kMiB, Side::send).value();
  EXPECT_TRUE(arena->could_hold(1000));   // beside the pinned piece
  EXPECT_FALSE(arena->could_hold(2000));  // another class has no chunk
  EXPECT_FALSE(arena->could_hold(4 * kMiB));
  arena->check_invariants();
  run = Buffer{};
  piece = Buffer{};
  EXPECT_TRUE(arena->could_hold(12 * kMiB));
}

TEST_F(ArenaTest, set_listener__hears_of_memory_that_comes_back) {
  struct Listener final : MemoryListener {
    void on_memory_free() noexcept override { ++heard; }
    int heard = 0;
  } listener;
  auto arena = make(1);
  arena->set_listener(&listener);
  Buffer buffer = arena->allocate(1).value();
  EXPECT_EQ(listener.heard, 0);
  buffer = Buffer{};
  EXPECT_EQ(listener.heard, 1);
  arena->set_listener(nullptr);
}

using ArenaDeathTest = ArenaTest;

TEST_F(ArenaDeathTest, destructor__with_a_buffer_out_dies) {
  auto arena = make(1);
  const Buffer buffer = arena->allocate(1).value();
  EXPECT_DEATH(arena.reset(), "outlived its worker");
}

TEST_F(ArenaDeathTest, reclaim__of_what_is_free_dies) {
  auto arena = make(1);
  const Buffer first = arena->allocate(256).value();
  Buffer second = arena->allocate(256).value();
  Block& block = *second.block();
  second = Buffer{};
  EXPECT_DEATH(arena->reclaim(block), "released twice");
}

// Its piece is free again or somebody else's: the same place, of another class.
TEST_F(ArenaDeathTest, reclaim__of_an_earlier_generation_dies) {
  auto arena = make(1);
  Buffer first = arena->allocate(256).value();
  Block& stale = *first.block();
  first = Buffer{};
  {
    const Buffer other = arena->allocate(4096).value();
    EXPECT_NE(other.block(), &stale);
    EXPECT_DEATH(arena->reclaim(stale), "earlier generation");
  }
  const Buffer run = arena->allocate(4 * kMiB).value();
  EXPECT_DEATH(arena->reclaim(stale), "earlier generation");
}

// However many generations a chunk goes through, and of whatever classes, the last one stays recognisable.
TEST_F(ArenaDeathTest, reclaim__of_the_generation_before_dies_when_the_table_has_turned) {
  auto arena = make(1);
  for (int i = 0; i < 7; ++i) {
    Buffer first = arena->allocate(i % 2 == 0 ? 64 : 8192).value();
    Block& stale = *first.block();
    first = Buffer{};
    const Buffer next = arena->allocate(i % 2 == 0 ? 128 : 2 * kMiB).value();
    EXPECT_DEATH(arena->reclaim(stale), "earlier generation") << i;
  }
}

TEST_F(ArenaDeathTest, resize__beyond_the_capacity_dies) {
  auto arena = make(1);
  Buffer buffer = arena->allocate(100).value();
  buffer.resize(128);
  EXPECT_EQ(buffer.size(), 128U);
  EXPECT_DEATH(buffer.resize(129), "beyond its capacity");
}

}  // namespace
}  // namespace bx::memory
