// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/types.h"

#include <gtest/gtest.h>

#include <set>

namespace bx::fabric {
namespace {

template <class T>
void expect_distinct_names(T last) {
  std::set<std::string_view> names;
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    EXPECT_TRUE(names.insert(to_string(static_cast<T>(value))).second) << value;
  }
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(static_cast<T>(200)), "unknown");
}

TEST(ToString, names__are_distinct) {
  expect_distinct_names(Opcode::cmp_swap);
  expect_distinct_names(WcStatus::fatal);
  expect_distinct_names(WcOpcode::recv_rdma_with_imm);
  expect_distinct_names(DeviceEventKind::device_fatal);
}

TEST(SendFlags, has__sees_each_flag_of_a_set) {
  const SendFlags both = SendFlags::signaled | SendFlags::fenced;
  EXPECT_TRUE(has(both, SendFlags::signaled));
  EXPECT_TRUE(has(both, SendFlags::fenced));
  EXPECT_FALSE(has(both, SendFlags::inlined));
  EXPECT_FALSE(has(SendFlags::none, SendFlags::signaled));
}

TEST(Access, allows__asks_for_all_rights_of_a_set) {
  const Access both = Access::remote_read | Access::remote_write;
  EXPECT_TRUE(allows(both, Access::remote_read));
  EXPECT_TRUE(allows(both, both));
  EXPECT_FALSE(allows(both, Access::remote_atomic));
  EXPECT_FALSE(allows(both, Access::remote_all));
  EXPECT_TRUE(allows(Access::local, Access::local));
  EXPECT_FALSE(allows(Access::local, Access::remote_read));
}

}  // namespace
}  // namespace bx::fabric
