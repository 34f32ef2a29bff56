// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/wr_id.h"

#include <gtest/gtest.h>

#include "tests/support/property.h"

namespace bx::engine {
namespace {

TEST(WrId, decode__inverts_encode) {
  test::expect_property([](std::uint32_t number) {
    const WrTag tag{*rc::gen::element(WrKind::send, WrKind::receive),
                    *rc::gen::inRange<std::uint32_t>(0, 1U << 24U), number,
                    *rc::gen::inRange<std::uint32_t>(0, 1U << 6U)};
    RC_ASSERT(decode(encode(tag)) == tag);
  });
}

TEST(WrId, encode__keeps_the_extremes_apart) {
  const WrTag last{WrKind::receive, (1U << 24U) - 1, 0xffffffff, (1U << 6U) - 1};
  EXPECT_EQ(decode(encode(last)), last);
  EXPECT_NE(encode({WrKind::send, 0, 0}), encode({WrKind::receive, 0, 0}));
  EXPECT_EQ(static_cast<std::uint64_t>(encode({WrKind::send, 1, 2})), 0x4000000100000002U);
  EXPECT_NE(encode({WrKind::send, 1, 2, 1}), encode({WrKind::send, 1, 2, 0}));
}

}  // namespace
}  // namespace bx::engine
