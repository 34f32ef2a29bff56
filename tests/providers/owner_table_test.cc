// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/owner_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace bx::verbs {
namespace {

RC_GTEST_PROP(OwnerTable, tag__survives_packing, ()) {
  const Tag tag{.number = *rc::gen::arbitrary<std::uint32_t>(),
                .index = *rc::gen::arbitrary<std::uint32_t>() & 0xffffffU,
                .round = static_cast<std::uint8_t>(*rc::gen::inRange(0, 128)),
                .receive = *rc::gen::arbitrary<bool>()};
  RC_ASSERT(Tag::unpack(tag.pack()) == tag);
}

TEST(OwnerTable, find__knows_who_is_there) {
  OwnerTable table;
  int a = 0;
  int b = 0;
  const Tag first = table.add(&a, false);
  const Tag second = table.add(&b, true);
  EXPECT_EQ(table.find(first), &a);
  EXPECT_EQ(table.find(second), &b);
  EXPECT_TRUE(second.receive);
}

TEST(OwnerTable, find__does_not_take_the_new_owner_for_the_old_one) {
  OwnerTable table;
  int a = 0;
  int b = 0;
  const Tag old = table.add(&a, false);
  table.remove(old);
  EXPECT_EQ(table.find(old), nullptr);
  const Tag fresh = table.add(&b, false);
  EXPECT_EQ(fresh.index, old.index);
  EXPECT_EQ(table.find(old), nullptr);
  EXPECT_EQ(table.find(fresh), &b);
}

TEST(OwnerTable, find__of_an_index_that_never_was) {
  const OwnerTable table;
  EXPECT_EQ(table.find({.index = 99}), nullptr);
}

}  // namespace
}  // namespace bx::verbs
