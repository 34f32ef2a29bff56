// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/gid_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libbx/providers/native/socket_address.h"

namespace bx::verbs {
namespace {

fabric::Gid gid(const char* address) {
  return native::SocketAddress::parse(address)->gid();
}

TEST(GidChoice, address_kind__of_each) {
  EXPECT_EQ(address_kind(fabric::Gid{}), GidAddress::none);
  EXPECT_EQ(address_kind(gid("10.1.2.3")), GidAddress::ipv4);
  EXPECT_EQ(address_kind(gid("fd00::1")), GidAddress::ipv6_global);
  EXPECT_EQ(address_kind(gid("2001:db8::1")), GidAddress::ipv6_global);
  EXPECT_EQ(address_kind(gid("fe80::1")), GidAddress::ipv6_link_local);
  EXPECT_EQ(address_kind(gid("febf::1")), GidAddress::ipv6_link_local);
  EXPECT_EQ(address_kind(gid("fec0::1")), GidAddress::ipv6_global);
}

struct Case {
  const char* what;
  std::vector<GidEntry> table;
  const char* wanted;  // null: the best
  int index;           // -1: none
};

const GidEntry kLinkLocalV1{gid("fe80::1"), 0, GidType::roce_v1};
const GidEntry kLinkLocalV2{gid("fe80::1"), 1, GidType::roce_v2};
const GidEntry kV4V1{gid("10.0.0.1"), 2, GidType::roce_v1};
const GidEntry kV4V2{gid("10.0.0.1"), 3, GidType::roce_v2};
const GidEntry kV6V1{gid("fd00::1"), 4, GidType::roce_v1};
const GidEntry kV6V2{gid("fd00::1"), 5, GidType::roce_v2};
const GidEntry kOtherV4V2{gid("10.0.1.1"), 6, GidType::roce_v2};
const GidEntry kEmpty{fabric::Gid{}, 7, GidType::roce_v2};

class ChooseGid : public testing::TestWithParam<Case> {};

TEST_P(ChooseGid, by_type_and_address_never_by_index) {
  const Case& one = GetParam();
  const fabric::Gid wanted = one.wanted != nullptr ? gid(one.wanted) : fabric::Gid{};
  const auto chosen = choose_gid(one.table, one.wanted != nullptr ? &wanted : nullptr);
  ASSERT_EQ(chosen.has_value(), one.index >= 0) << one.what;
  if (chosen) {
    EXPECT_EQ(static_cast<int>(chosen->index), one.index) << one.what;
  } else {
    EXPECT_EQ(chosen.error().code, ErrorCode::unreachable);
    EXPECT_NE(std::string(chosen.error().detail), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    tables, ChooseGid,
    testing::Values(
        Case{"a table as a ConnectX has it",
             {kLinkLocalV1, kLinkLocalV2, kV4V1, kV4V2, kV6V1, kV6V2},
             nullptr,
             3},
        Case{"IPv4 before IPv6 in any order", {kV6V2, kV4V2}, nullptr, 3},
        Case{"IPv6 if there is nothing else", {kLinkLocalV1, kLinkLocalV2, kV6V1, kV6V2}, nullptr, 5},
        Case{"the first of several IPv4", {kOtherV4V2, kV4V2}, nullptr, 6},
        Case{"no link-local one unasked", {kLinkLocalV1, kLinkLocalV2}, nullptr, -1},
        Case{"no RoCE v1 unasked", {kV4V1, kV6V1}, nullptr, -1}, Case{"an empty table", {}, nullptr, -1},
        Case{"entries without an address", {kEmpty}, nullptr, -1},
        Case{"the address asked for, version 2 of the two", {kV4V1, kV4V2, kOtherV4V2}, "10.0.0.1", 3},
        Case{"version 2 even if it stands first", {kV4V2, kV4V1}, "10.0.0.1", 3},
        Case{"another address is not good enough", {kV4V2}, "10.0.0.2", -1},
        Case{"a link-local address if asked for", {kLinkLocalV1, kLinkLocalV2, kV4V2}, "fe80::1", 1},
        Case{"an IPv6 address if asked for", {kV4V2, kV6V2}, "fd00::1", 5}));

TEST(ChooseGid, errors__tell_an_empty_table_from_a_wrong_address) {
  const fabric::Gid wanted = gid("10.0.0.9");
  const std::vector<GidEntry> table{kV4V2};
  const std::string empty = choose_gid({}, &wanted).error().detail;
  const std::string other = choose_gid(table, &wanted).error().detail;
  EXPECT_NE(empty.find("empty"), std::string::npos);
  EXPECT_NE(other.find("ip addr"), std::string::npos);
}

}  // namespace
}  // namespace bx::verbs
