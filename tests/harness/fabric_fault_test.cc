// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/fabric_fault.h"

#include <gtest/gtest.h>

#include "harness/scenario/scenario.h"

namespace bx::harness {
namespace {

std::string errors_of(const std::string& fabric) {
  Diagnostics diagnostics;
  const auto scenario =
      parse_scenario("name = 'x'\n[fabric]\n" + fabric +
                         "\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = 1\nanswer = '1KiB'\n",
                     "s.toml", {}, diagnostics);
  EXPECT_FALSE(scenario);
  return diagnostics.text();
}

TEST(fabric_fault, find_fabric_fault__none_of_a_network_that_can_be) {
  EXPECT_FALSE(find_fabric_fault(Settings{}));
}

TEST(fabric_fault, parse_scenario__a_shape_says_which_numbers_of_hosts_it_can_have) {
  EXPECT_EQ(
      errors_of("topology = 'fat-tree'\nhosts = 20"),
      "s.toml:4:9: error: 'fabric.hosts' = 20: hosts: a fat tree has k^3/4 for an even k: 2, 16, 54, 128, "
      "250, 432, 686, 1024, ...; next to it, 16 and 54 would do\n");
  EXPECT_EQ(errors_of("topology = 'leaf-spine'\nhosts = 10\nleaves = 4"),
            "s.toml:4:9: error: 'fabric.hosts' = 10 with 'fabric.leaves' = 4: hosts: give a multiple of the "
            "leaves; next to it, 8 and 12 would do\n");
}

TEST(fabric_fault, parse_scenario__a_buffer_says_how_large_it_must_be) {
  const std::string text = errors_of("hosts = 64\nbuffer = '1MiB'");
  EXPECT_TRUE(text.starts_with("s.toml:4:10: error: 'fabric.buffer' = 1MiB with 'fabric.reserved' = 4KiB: "))
      << text;
  const std::size_t quote = text.rfind("'", text.rfind("would do") - 3);
  const std::string enough = text.substr(quote, text.rfind("'") - quote + 1);
  Diagnostics diagnostics;
  EXPECT_TRUE(
      parse_scenario("name = 'x'\n[fabric]\nhosts = 64\nbuffer = " + enough +
                         "\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = 1\nanswer = '1KiB'\n",
                     "s.toml", {}, diagnostics))
      << text << diagnostics.text();
}

TEST(fabric_fault, parse_scenario__to_blame_is_the_key_that_somebody_set) {
  EXPECT_EQ(errors_of("congestion_control.algorithm = 'dcqcn'\necn.enabled = false"),
            "s.toml:3:32: error: 'fabric.congestion_control.algorithm' = dcqcn with 'fabric.ecn.enabled' = "
            "false: congestion_control.algorithm: dcqcn needs the switches' marks; set ecn.enabled = true\n");
  EXPECT_EQ(
      errors_of("nic.tx_latency = '1us'\nnic.pcie_rate = '100Gbps'"),
      "s.toml:4:17: error: 'fabric.nic.pcie_rate' = 100Gbps with 'fabric.nic.profile' = none: nic.profile: "
      "costs need one to change; give ideal or connectx5\n");
  EXPECT_EQ(
      errors_of("ecn.kmin = '400KiB'"),
      "s.toml:3:12: error: 'fabric.ecn.kmin' = 400KiB with 'fabric.ecn.kmax' = 400KiB: ecn.kmin: give less "
      "than ecn.kmax\n");
}

TEST(fabric_fault, parse_scenario__one_mistake_of_all_variants_is_one_error) {
  EXPECT_EQ(errors_of("ecn.kmin = '1MiB'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n"),
            "s.toml:3:12: error: 'fabric.ecn.kmin' = 1MiB is above 'fabric.ecn.kmax' = 400KiB\n");
}

}  // namespace
}  // namespace bx::harness
