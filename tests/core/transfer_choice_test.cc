// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/core/transfer_choice.h"

#include <gtest/gtest.h>

namespace bx::core {
namespace {

constexpr TransferLimits kPull{
    .header_bytes = 28, .inline_max = 220, .eager_max = 8192, .prefer_granted_write = false};
constexpr TransferLimits kWrite{
    .header_bytes = 28, .inline_max = 220, .eager_max = 8192, .prefer_granted_write = true};

TEST(ChooseTransfer, at_every_border__takes_the_cheapest_way_that_fits) {
  for (const TransferLimits& limits : {kPull, kWrite}) {
    const Transfer large = limits.prefer_granted_write ? Transfer::granted_write : Transfer::pull;
    EXPECT_EQ(choose_transfer(0, limits), Transfer::inlined);
    EXPECT_EQ(choose_transfer(192, limits), Transfer::inlined);
    EXPECT_EQ(choose_transfer(193, limits), Transfer::eager);
    EXPECT_EQ(choose_transfer(8192, limits), Transfer::eager);
    EXPECT_EQ(choose_transfer(8193, limits), large);
    EXPECT_EQ(choose_transfer(std::uint64_t{1} << 40U, limits), large);
  }
}

TEST(ChooseTransfer, without_inline__even_nothing_is_eager) {
  constexpr TransferLimits kNoInline{
      .header_bytes = 28, .inline_max = 0, .eager_max = 100, .prefer_granted_write = false};
  EXPECT_EQ(choose_transfer(0, kNoInline), Transfer::eager);
}

// A peer whose receives hold no payload at all is still sent empty messages, and offered the rest.
TEST(ChooseTransfer, peer_without_room__is_offered_everything_but_nothing) {
  constexpr TransferLimits kNoEager{
      .header_bytes = 28, .inline_max = 220, .eager_max = 0, .prefer_granted_write = false};
  EXPECT_EQ(choose_transfer(0, kNoEager), Transfer::inlined);
  EXPECT_EQ(choose_transfer(1, kNoEager), Transfer::pull);
}

}  // namespace
}  // namespace bx::core
