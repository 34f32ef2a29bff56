// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/host_address.h"

#include <gtest/gtest.h>

namespace bx::sim {
namespace {

TEST(host_address, gid__is_an_ipv4_address_that_leads_back_to_its_host) {
  for (const std::uint32_t host : {0U, 1U, 254U, 255U, 256U, 65534U}) {
    EXPECT_EQ(host_of(gid_of(static_cast<std::uint16_t>(host))), host);
  }
  const fabric::Gid gid = gid_of(257);
  EXPECT_EQ(gid, (fabric::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 2}));
}

TEST(host_address, host_of__knows_no_other_addresses) {
  EXPECT_EQ(host_of({}), kNoHost);
  EXPECT_EQ(host_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0}), kNoHost);
  EXPECT_EQ(host_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 11, 0, 0, 1}), kNoHost);
  EXPECT_EQ(host_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 0}), kNoHost);
}

}  // namespace
}  // namespace bx::sim
