// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/link_shaping.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

TEST(LinkShaping, tc_lines__shape_both_directions_of_every_link) {
  EXPECT_EQ(tc_lines({.hosts = 2, .rate_bps = 100'000'000, .delay_ns = 10'000}),
            "qdisc replace dev h1 root netem limit 1000000 delay 10us rate 100000000bit 24\n"
            "qdisc replace dev p1 root netem limit 1000000 delay 10us rate 100000000bit 24\n"
            "qdisc replace dev h2 root netem limit 1000000 delay 10us rate 100000000bit 24\n"
            "qdisc replace dev p2 root netem limit 1000000 delay 10us rate 100000000bit 24\n");
}

TEST(LinkShaping, tc_lines__leave_a_delay_below_a_microsecond_out) {
  EXPECT_EQ(tc_lines({.hosts = 1, .rate_bps = 1'000'000, .delay_ns = 999}),
            "qdisc replace dev h1 root netem limit 1000000 rate 1000000bit 24\n"
            "qdisc replace dev p1 root netem limit 1000000 rate 1000000bit 24\n");
}

TEST(LinkShaping, ip_lines__leave_room_for_the_headers) {
  EXPECT_EQ(ip_lines({.hosts = 2, .mtu = 1024}),
            "link set h1 mtu 1152\nlink set p1 up\nlink set h2 mtu 1152\nlink set p2 up\n");
  EXPECT_EQ(ip_lines({.hosts = 1, .mtu = 4096}), "link set h1 mtu 9000\nlink set p1 up\n");
}

TEST(LinkShaping, impairment_line__a_link_that_is_not_shaped_has_its_losses_only) {
  EXPECT_EQ(
      impairment_line({.hosts = 1, .rate_bps = 100'000'000'000, .delay_ns = 10'000}, "p1", {.loss = 0.015}),
      "qdisc replace dev p1 root netem limit 1000000 loss 1.5000% corrupt 0.0000%\n");
}

}  // namespace
}  // namespace bx::harness
