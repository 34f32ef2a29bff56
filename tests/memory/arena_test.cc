// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/arena.h"

#include <algorithm>
#include <map>

#include "tests/engine/world.h"
#include "tests/support/property.h"

namespace bx::engine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

class ArenaTest : public ::testing::Test {
 protected:
  std::unique_ptr<Arena> make(std::uint64_t bytes) {
    auto arena = Arena::create(host_->device(), bytes);
    EXPECT_TRUE(arena.has_value());
    return std::move(*arena);
  }
  loopback::LoopbackFabric fabric_;
  std::unique_ptr<fabric::Host> host_ = fabric_.open_host("host").value();
};

TEST_F(ArenaTest, create__rounds_up_to_whole_chunks) {
  EXPECT_EQ(make(1)->capacity(), Arena::kChunkBytes);
  EXPECT_EQ(make(Arena::kChunkBytes + 1)->capacity(), 2 * Arena::kChunkBytes);
}

TEST_F(ArenaTest, allocate__nothing_is_empty_and_free) {
  auto arena = make(1);
  EXPECT_EQ(arena->allocate(0)->capacity(), 0U);
  EXPECT_EQ(arena->bytes_in_use(), 0U);
}

TEST_F(ArenaTest, allocate__rounds_up_to_the_size_class) {
  auto arena = make(8 * kMiB);
  for (const auto& [size, capacity] : std::map<std::size_t, std::size_t>{{1, 256},
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
  EXPECT_TRUE(arena->allocate(200).has_value());
}

TEST_F(ArenaTest, allocate__uses_every_piece_of_a_chunk_once) {
  auto arena = make(1);
  for (const std::size_t size : {std::size_t{256}, std::size_t{8192}, 2 * kMiB}) {
    std::vector<Buffer> pieces;
    std::vector<const std::byte*> places;
    for (auto piece = arena->allocate(size); piece; piece = arena->allocate(size)) {
      places.push_back(piece->data());
      pieces.push_back(std::move(*piece));
    }
    EXPECT_EQ(pieces.size(), Arena::kChunkBytes / size);
    std::ranges::sort(places);
    EXPECT_EQ(std::ranges::adjacent_find(places), places.end());
    arena->check_invariants();
  }
  EXPECT_EQ(arena->bytes_in_use(), 0U);
}

TEST_F(ArenaTest, reclaim__lets_a_chunk_serve_another_class) {
  auto arena = make(1);
  {
    std::vector<Buffer> pieces;
    for (int i = 0; i < 100; ++i) pieces.push_back(arena->allocate(256).value());
    EXPECT_FALSE(arena->allocate(Arena::kChunkBytes).has_value());
  }
  { const Buffer whole = arena->allocate(Arena::kChunkBytes).value(); }
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

// Buffers of random sizes never share a byte, and all memory is accounted for.
TEST_F(ArenaTest, random_use__never_overlaps_and_conserves_bytes) {
  test::expect_property([this] {
    auto arena = make(24 * kMiB);
    const auto steps = *rc::gen::scale(4.0, rc::gen::arbitrary<std::vector<std::uint16_t>>());
    std::map<const std::byte*, Buffer> held;
    std::uint64_t in_use = 0;
    for (const std::uint16_t step : steps) {
      if (step % 3 == 0 && !held.empty()) {
        auto victim = held.begin();
        std::advance(victim, static_cast<std::ptrdiff_t>((step >> 2U) % held.size()));
        in_use -= victim->second.capacity();
        held.erase(victim);
      } else {
        const std::size_t size = 1 + (std::size_t{step} << (step % 9));
        auto buffer = arena->allocate(size);
        if (!buffer) {
          RC_ASSERT(buffer.error().code == ErrorCode::exhausted);
          continue;
        }
        const std::byte* begin = buffer->data();
        const auto after = held.lower_bound(begin);
        const bool below = after == held.end() || begin + buffer->capacity() <= after->first;
        const bool above =
            after == held.begin() || std::prev(after)->first + std::prev(after)->second.capacity() <= begin;
        RC_ASSERT(below);
        RC_ASSERT(above);
        in_use += buffer->capacity();
        held.emplace(begin, std::move(*buffer));
      }
      RC_ASSERT(arena->bytes_in_use() == in_use);
      arena->check_invariants();
    }
    held.clear();
    RC_ASSERT(arena->bytes_in_use() == 0U);
    RC_ASSERT(arena->allocate(24 * kMiB).has_value());
  });
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
  Buffer piece = arena->allocate_pinned(1000).value();
  EXPECT_TRUE(arena->could_hold(8 * kMiB));
  EXPECT_FALSE(arena->could_hold(8 * kMiB + 1));
  Buffer run = arena->allocate_pinned(8 * kMiB).value();
  EXPECT_TRUE(arena->could_hold(1000));   // beside the pinned piece
  EXPECT_FALSE(arena->could_hold(2000));  // another class has no chunk
  EXPECT_FALSE(arena->could_hold(4 * kMiB));
  arena->check_invariants();
  run = Buffer{};
  piece = Buffer{};
  EXPECT_TRUE(arena->could_hold(12 * kMiB));
}

TEST_F(ArenaTest, could_hold__agrees_with_what_is_left_when_all_else_is_back) {
  test::expect_property([this](const std::vector<std::uint16_t>& steps) {
    auto arena = make(16 * kMiB);
    std::vector<Buffer> pinned;
    std::vector<Buffer> others;
    for (const std::uint16_t step : steps) {
      const std::size_t size = 1 + (std::size_t{step} << (step % 8));
      auto buffer = step % 5 == 0 ? arena->allocate_pinned(size) : arena->allocate(size);
      if (buffer) (step % 5 == 0 ? pinned : others).push_back(std::move(*buffer));
    }
    const std::size_t wanted = 1 + *rc::gen::inRange<std::size_t>(0, 17 * kMiB);
    const bool expected = arena->could_hold(wanted);
    others.clear();
    RC_ASSERT(arena->could_hold(wanted) == expected);
    RC_ASSERT(arena->allocate(wanted).has_value() == expected);
  });
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

TEST_F(ArenaDeathTest, resize__beyond_the_capacity_dies) {
  auto arena = make(1);
  Buffer buffer = arena->allocate(100).value();
  buffer.resize(256);
  EXPECT_EQ(buffer.size(), 256U);
  EXPECT_DEATH(buffer.resize(257), "beyond its capacity");
}

}  // namespace
}  // namespace bx::engine
