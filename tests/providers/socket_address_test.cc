// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/native/socket_address.h"

#include <gtest/gtest.h>

namespace bx::native {
namespace {

TEST(SocketAddress, parse__takes_both_families_and_nothing_else) {
  EXPECT_EQ(SocketAddress::parse("10.0.0.1")->family(), AF_INET);
  EXPECT_EQ(SocketAddress::parse("fd00::1")->family(), AF_INET6);
  for (const char* wrong : {"", "host7", "10.0.0", "10.0.0.256", "fd00:::1", "10.0.0.1:80"}) {
    EXPECT_FALSE(SocketAddress::parse(wrong).has_value()) << wrong;
  }
}

TEST(SocketAddress, gid__of_an_ipv4_address_is_the_mapped_one) {
  const fabric::Gid expected{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 2};
  EXPECT_EQ(SocketAddress::parse("10.77.0.2")->gid(), expected);
}

TEST(SocketAddress, gid__of_an_ipv6_address_is_the_address) {
  const fabric::Gid expected{0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1f};
  EXPECT_EQ(SocketAddress::parse("fd77::1f")->gid(), expected);
}

}  // namespace
}  // namespace bx::native
