// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/memory_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <set>
#include <vector>

namespace bx::sim {
namespace {

constexpr MemoryAccess kAll = MemoryAccess::local_write | MemoryAccess::remote_read |
                              MemoryAccess::remote_write | MemoryAccess::remote_atomic;

class MemoryTableTest : public testing::Test {
 protected:
  [[nodiscard]] std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(bytes_.data()) + offset;
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1000);
  MemoryTable table_;
};

TEST_F(MemoryTableTest, add__refuses_no_bytes) {
  EXPECT_FALSE(table_.add({}, kAll).has_value());
}

TEST_F(MemoryTableTest, covers__is_exact_at_the_bounds) {
  const MemoryKeys keys = table_.add(std::span(bytes_).subspan(100, 50), kAll).value();
  const auto local = [&](std::size_t offset, std::uint64_t length) {
    return table_.covers(keys.lkey, at(offset), length, MemoryAccess::local_read);
  };
  EXPECT_TRUE(local(100, 50));
  EXPECT_TRUE(local(149, 1));
  EXPECT_TRUE(local(150, 0));
  EXPECT_FALSE(local(100, 51));
  EXPECT_FALSE(local(99, 2));
  EXPECT_FALSE(local(150, 1));
  EXPECT_FALSE(local(120, UINT64_MAX)) << "a length that wraps";
  EXPECT_FALSE(table_.covers(keys.lkey, UINT64_MAX, 2, MemoryAccess::local_read));
}

TEST_F(MemoryTableTest, covers__asks_for_each_right) {
  for (const MemoryAccess right :
       {MemoryAccess::remote_read, MemoryAccess::remote_write, MemoryAccess::remote_atomic}) {
    const bool writes = right != MemoryAccess::remote_read;
    const MemoryAccess rights = writes ? right | MemoryAccess::local_write : right;
    const MemoryKeys keys = table_.add(bytes_, rights).value();
    for (const MemoryAccess wanted :
         {MemoryAccess::remote_read, MemoryAccess::remote_write, MemoryAccess::remote_atomic}) {
      EXPECT_EQ(table_.covers(keys.rkey, at(0), 1, wanted), wanted == right);
    }
    EXPECT_TRUE(table_.covers(keys.lkey, at(0), 1, MemoryAccess::local_read));
    EXPECT_EQ(table_.covers(keys.lkey, at(0), 1, MemoryAccess::local_write), writes);
  }
}

TEST_F(MemoryTableTest, add__refuses_remote_writes_without_local_write) {
  for (unsigned rights = 0; rights < 16; ++rights) {
    const bool writes = (rights & 0xcU) != 0;
    const bool local = (rights & 1U) != 0;
    const auto keys = table_.add(bytes_, static_cast<MemoryAccess>(rights));
    EXPECT_EQ(keys.has_value(), local || !writes) << rights;
    if (!keys) {
      EXPECT_EQ(keys.error().sys, EINVAL);
    }
  }
}

TEST_F(MemoryTableTest, keys__have_a_tag_of_eight_bits_that_changes_with_each_use) {
  const MemoryKeys first = table_.add(bytes_, kAll).value();
  table_.remove(first);
  const MemoryKeys second = table_.add(bytes_, kAll).value();
  EXPECT_EQ(first.lkey >> 8U & 0xfffffU, second.lkey >> 8U & 0xfffffU) << "the same slot";
  EXPECT_NE(first.lkey & 0xffU, second.lkey & 0xffU);
  const MemoryKeys third = table_.reregister(second, bytes_, kAll).value();
  EXPECT_NE(second.lkey & 0xffU, third.lkey & 0xffU);
  EXPECT_FALSE(table_.covers(second.rkey, at(0), 1, MemoryAccess::remote_read));
  EXPECT_TRUE(table_.covers(third.rkey, at(0), 1, MemoryAccess::remote_read));
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(MemoryTableTest, invalidate__ends_both_keys_until_the_region_is_registered_again) {
  for (const bool by_rkey : {false, true}) {
    const MemoryKeys keys = table_.add(bytes_, kAll).value();
    EXPECT_TRUE(table_.invalidate(by_rkey ? keys.rkey : keys.lkey));
    EXPECT_FALSE(table_.covers(keys.lkey, at(0), 1, MemoryAccess::local_read));
    EXPECT_FALSE(table_.covers(keys.rkey, at(0), 1, MemoryAccess::remote_read));
    EXPECT_FALSE(table_.covers(0, at(0), 1, MemoryAccess::local_read));
    EXPECT_FALSE(table_.invalidate(keys.rkey)) << "not twice";
    const MemoryKeys again = table_.reregister(keys, std::span(bytes_).subspan(10, 20), kAll).value();
    EXPECT_TRUE(table_.covers(again.rkey, at(10), 20, MemoryAccess::remote_write));
    EXPECT_FALSE(table_.covers(again.rkey, at(9), 1, MemoryAccess::remote_write));
    EXPECT_TRUE(table_.invalidate(again.lkey));
    table_.remove(again);
  }
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_FALSE(table_.invalidate(0));
  EXPECT_FALSE(table_.invalidate(UINT32_MAX));
}

TEST_F(MemoryTableTest, invalidate_remotely__needs_the_rkey_of_a_region_with_a_remote_right) {
  const MemoryKeys shared = table_.add(bytes_, MemoryAccess::remote_read).value();
  const MemoryKeys own = table_.add(bytes_, MemoryAccess::local_write).value();
  EXPECT_FALSE(table_.invalidate_remotely(shared.lkey));
  EXPECT_FALSE(table_.invalidate_remotely(own.rkey));
  EXPECT_TRUE(table_.invalidate_remotely(shared.rkey));
  EXPECT_FALSE(table_.invalidate_remotely(shared.rkey));
}

TEST_F(MemoryTableTest, keys__of_one_kind_are_not_the_other) {
  const MemoryKeys keys = table_.add(bytes_, kAll).value();
  EXPECT_FALSE(table_.covers(keys.lkey, at(0), 1, MemoryAccess::remote_read));
  EXPECT_FALSE(table_.covers(keys.rkey, at(0), 1, MemoryAccess::local_read));
  EXPECT_FALSE(table_.covers(0, at(0), 1, MemoryAccess::local_read));
}

TEST_F(MemoryTableTest, keys__of_another_table_mean_nothing) {
  MemoryTable other(1);
  const MemoryKeys mine = table_.add(bytes_, kAll).value();
  const MemoryKeys theirs = other.add(bytes_, kAll).value();
  EXPECT_FALSE(table_.covers(theirs.rkey, at(0), 1, MemoryAccess::remote_read));
  EXPECT_FALSE(other.covers(mine.rkey, at(0), 1, MemoryAccess::remote_read));
}

TEST_F(MemoryTableTest, remove__ends_the_key_for_a_whole_round_of_generations) {
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 2000; ++i) {
    const MemoryKeys keys = table_.add(bytes_, kAll).value();
    EXPECT_TRUE(seen.insert(keys.lkey).second) << "round " << i;
    table_.remove(keys);
    EXPECT_FALSE(table_.covers(keys.lkey, at(0), 1, MemoryAccess::local_read));
  }
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(MemoryTableTest, remove__twice_is_a_programming_error) {
  const MemoryKeys keys = table_.add(bytes_, kAll).value();
  table_.remove(keys);
  EXPECT_DEATH(table_.remove(keys), "removed twice");
}

TEST_F(MemoryTableTest, gather_and_scatter__walk_the_segments_from_any_offset) {
  const MemoryKeys keys = table_.add(bytes_, kAll).value();
  for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i % 251);
  const std::array<Segment, 4> segments{Segment{at(10), 3, keys.lkey}, Segment{at(0), 0, 0},
                                        Segment{at(500), 5, keys.lkey}, Segment{at(20), 2, keys.lkey}};
  EXPECT_EQ(total_length(segments), 10U);
  const std::vector<std::byte> run{bytes_[10],  bytes_[11],  bytes_[12],  bytes_[500], bytes_[501],
                                   bytes_[502], bytes_[503], bytes_[504], bytes_[20],  bytes_[21]};
  for (std::size_t offset = 0; offset <= run.size(); ++offset) {
    for (std::size_t count = 0; offset + count <= run.size(); ++count) {
      std::vector<std::byte> out(count);
      ASSERT_TRUE(gather(table_, segments, offset, out));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), run.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
  }
  const std::array<std::byte, 4> news{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_TRUE(scatter(table_, segments, 2, news));
  EXPECT_EQ(bytes_[12], std::byte{1});
  EXPECT_EQ(bytes_[500], std::byte{2});
  EXPECT_EQ(bytes_[502], std::byte{4});
}

TEST_F(MemoryTableTest, gather__fails_on_a_key_that_it_needs_and_on_no_other) {
  const MemoryKeys keys = table_.add(bytes_, kAll).value();
  const std::array<Segment, 2> segments{Segment{at(0), 4, keys.lkey}, Segment{at(10), 4, 12345}};
  std::array<std::byte, 4> out{};
  EXPECT_TRUE(gather(table_, segments, 0, out));
  EXPECT_FALSE(gather(table_, segments, 1, out));
  EXPECT_FALSE(all_covered(table_, segments, MemoryAccess::local_read));
  EXPECT_TRUE(all_covered(table_, {segments.data(), 1}, MemoryAccess::local_write));
}

}  // namespace
}  // namespace bx::sim
