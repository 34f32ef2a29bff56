// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/topology_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bx::harness {
namespace {

constexpr std::string_view kGood = R"(hosts = 3
switches = ["left", "right"]
rate = "100Gbps"
delay = "2us"
[[link]]
ends = ["host0..1", "left"]
[[link]]
ends = ["host2", "right"]
delay = "1us"
[[link]]
ends = ["left", "right"]
rate = "400Gbps"
count = 2
)";

std::string errors_of(std::string_view text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse_topology(text, "t.toml", diagnostics).has_value());
  return diagnostics.text();
}
std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kGood);
  return text.replace(text.find(from), from.size(), to);
}

TEST(topology_file, parse_topology__hosts_switches_and_links_with_their_speeds) {
  Diagnostics diagnostics;
  const auto plan = parse_topology(kGood, "t.toml", diagnostics);
  ASSERT_TRUE(plan) << diagnostics.text();
  EXPECT_EQ(plan->hosts, 3);
  EXPECT_EQ(plan->switches, (std::vector<std::string>{"left", "right"}));
  ASSERT_EQ(plan->links.size(), 5U);
  EXPECT_EQ(plan->links[1].ends[0], sim::host_node(1));
  EXPECT_EQ(plan->links[1].ends[1], sim::switch_node(0));
  EXPECT_EQ(plan->links[1].speed.delay, sim::microseconds{2});
  EXPECT_EQ(plan->links[2].speed.delay, sim::microseconds{1});
  EXPECT_EQ(plan->links[2].speed.rate.bits_per_second, 100'000'000'000U);
  EXPECT_EQ(plan->links[4].speed.rate.bits_per_second, 400'000'000'000U);
  EXPECT_EQ(sim::find_links(*plan, "left-right").size(), 2U);
}

TEST(topology_file, parse_topology__mistakes_are_named_where_they_stand) {
  EXPECT_EQ(errors_of(replaced("\"right\"]\nrate", "\"left\"]\nrate")).substr(0, 58),
            "t.toml:2:21: error: there is already a switch 'left'\nt.tom");
  EXPECT_EQ(
      errors_of(replaced("\"host2\"", "\"host3\"")),
      "t.toml:8:9: error: a link leads to 'host3', which does not exist: there are host0 to host2 and left, "
      "right\n");
  EXPECT_EQ(errors_of(replaced("400Gbps", "400")),
            "t.toml:12:8: error: 'rate' = '400' is not a rate from 1Mbps to 3200Gbps, as '100Gbps'\n");
  EXPECT_EQ(errors_of(replaced("count = 2", "cuont = 2")),
            "t.toml:13:1: error: unknown key 'link.cuont' = 2; did you mean 'count'?\n");
  EXPECT_EQ(errors_of(replaced("count = 2", "count = 0")),
            "t.toml:13:9: error: 'link.count' = 0 is not a whole number from 1 to 4096\n");
  EXPECT_EQ(errors_of(replaced("hosts = 3\n", "")).substr(0, 75),
            "t.toml:1:1: error: a topology needs 'hosts', for example hosts = 16\nt.toml:");
  EXPECT_EQ(errors_of(replaced("hosts = 3", "hosts = 4")),
            "t.toml:1:1: error: this is no network: each host has one link\n");
  EXPECT_EQ(errors_of(replaced("[\"left\", \"right\"]\nrate = \"400", "[\"left\"]\nrate = \"400")),
            "t.toml:11:8: error: a link has two ends, for example ends = ['host0', 'left']\n");
}

TEST(topology_file, parse_topology__a_link_gets_rate_and_delay_from_somewhere) {
  EXPECT_EQ(
      errors_of(replaced("delay = \"2us\"\n", "")),
      "t.toml:4:1: error: this link has no delay, and the file none for all; write for example delay = "
      "'1us', or '0ns'\nt.toml:9:1: error: this link has no delay, and the file none for all; write for "
      "example delay = '1us', or '0ns'\n");
  EXPECT_EQ(errors_of(replaced("rate = \"100Gbps\"\n", "")).substr(0, 67),
            "t.toml:4:1: error: this link has no rate, and the file none for all");
}

TEST(topology_file, beside__is_relative_to_the_scenario) {
  EXPECT_EQ(beside("scenarios/a/b.toml", "t.toml"), "scenarios/a/t.toml");
  EXPECT_EQ(beside("b.toml", "nets/t.toml"), "nets/t.toml");
  EXPECT_EQ(beside("scenarios/b.toml", "/abs/t.toml"), "/abs/t.toml");
}

}  // namespace
}  // namespace bx::harness
