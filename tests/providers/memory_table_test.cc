// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/memory_table.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace bx::loopback {
namespace {

using fabric::Access;
using fabric::LKey;
using fabric::RKey;
using fabric::Sge;

class MemoryTableTest : public testing::Test {
 protected:
  [[nodiscard]] std::uint64_t address(std::int64_t offset = 0) const {
    return reinterpret_cast<std::uint64_t>(bytes.data()) + static_cast<std::uint64_t>(offset);
  }
  std::array<std::byte, 100> bytes{};
  MemoryTable table{Prng(1)};
};

TEST_F(MemoryTableTest, add__refuses_an_empty_span) {
  EXPECT_EQ(table.add({}, Access::local).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(table.live(), 0U);
}

TEST_F(MemoryTableTest, local__finds_every_range_inside_and_none_outside) {
  const LKey key = table.add(bytes, Access::local)->lkey;
  for (std::uint32_t offset = 0; offset <= 100; ++offset) {
    for (std::uint32_t length = 0; length <= 102; ++length) {
      const std::byte* found = table.local({address(offset), length, key});
      EXPECT_EQ(found, offset + length <= 100 ? bytes.data() + offset : nullptr) << offset << " " << length;
    }
  }
  EXPECT_EQ(table.local({address(-1), 1, key}), nullptr);
  EXPECT_EQ(table.local({address(-1), 200, key}), nullptr);
  EXPECT_EQ(table.local({UINT64_MAX, UINT32_MAX, key}), nullptr);
  EXPECT_EQ(table.local({address(101), 0, key}), nullptr);
}

TEST_F(MemoryTableTest, remote__needs_the_right_that_was_given) {
  const auto keys = table.add(bytes, Access::remote_read | Access::remote_atomic);
  const fabric::RemoteSpan span{address(), keys->rkey};
  EXPECT_EQ(table.remote(span, 100, Access::remote_read), bytes.data());
  EXPECT_EQ(table.remote(span, 8, Access::remote_atomic), bytes.data());
  EXPECT_EQ(table.remote(span, 100, Access::remote_write), nullptr);
  EXPECT_EQ(table.remote(span, 101, Access::remote_read), nullptr);
  EXPECT_EQ(table.remote({address() + 1, keys->rkey}, UINT64_MAX, Access::remote_read), nullptr);
}

TEST_F(MemoryTableTest, keys__of_one_kind_are_not_taken_for_the_other) {
  const auto keys = table.add(bytes, Access::remote_all);
  const auto as_lkey = LKey{static_cast<std::uint32_t>(keys->rkey)};
  const auto as_rkey = RKey{static_cast<std::uint32_t>(keys->lkey)};
  EXPECT_EQ(table.local({address(), 1, as_lkey}), nullptr);
  EXPECT_EQ(table.remote({address(), as_rkey}, 1, Access::remote_read), nullptr);
}

TEST_F(MemoryTableTest, remove__ends_the_keys_even_when_the_slot_is_used_again) {
  std::set<std::uint32_t> seen;
  for (int use = 0; use < 200; ++use) {
    const auto keys = table.add(bytes, Access::remote_all);
    EXPECT_TRUE(seen.insert(static_cast<std::uint32_t>(keys->lkey)).second) << use;
    EXPECT_EQ(table.live(), 1U);
    table.remove(*keys);
    EXPECT_EQ(table.local({address(), 1, keys->lkey}), nullptr);
    EXPECT_EQ(table.remote({address(), keys->rkey}, 1, Access::remote_read), nullptr);
    EXPECT_EQ(table.live(), 0U);
  }
}

TEST_F(MemoryTableTest, keys__that_were_never_given_find_nothing) {
  table.add(bytes, Access::remote_all);
  for (const std::uint32_t key : {0U, 1U, 0x100U, 0x7fffffffU, 0x80000000U, UINT32_MAX}) {
    const bool first_slot = (key & 0x7fffff00U) == 0;  // may be the right generation by chance
    if (first_slot) continue;
    EXPECT_EQ(table.local({address(), 1, LKey{key}}), nullptr);
    EXPECT_EQ(table.remote({address(), RKey{key}}, 1, Access::remote_read), nullptr);
  }
}

TEST_F(MemoryTableTest, generations__depend_on_the_seed) {
  MemoryTable other(Prng(2));
  EXPECT_NE(table.add(bytes, Access::local)->lkey, other.add(bytes, Access::local)->lkey);
}

TEST_F(MemoryTableTest, regions__may_overlap_with_rights_of_their_own) {
  const auto reader = table.add(bytes, Access::remote_read);
  const auto writer = table.add(std::span(bytes).first(50), Access::remote_write);
  EXPECT_NE(table.remote({address(), reader->rkey}, 100, Access::remote_read), nullptr);
  EXPECT_EQ(table.remote({address(), writer->rkey}, 100, Access::remote_write), nullptr);
  EXPECT_NE(table.remote({address(), writer->rkey}, 50, Access::remote_write), nullptr);
  table.remove(*reader);
  EXPECT_NE(table.remote({address(), writer->rkey}, 50, Access::remote_write), nullptr);
}

}  // namespace
}  // namespace bx::loopback
