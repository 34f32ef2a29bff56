// SPDX-License-Identifier: GPL-2.0-only
#include "harness/machine/system_view.h"

#include <gtest/gtest.h>

#include "harness/machine/ethtool.h"
#include "harness/machine/rdma_port.h"
#include "tests/harness/tools/fake_machine.h"

namespace bx::harness {
namespace {

TEST(system_view, read__trims_and_tells_what_is_not_there) {
  const FakeMachine machine;
  machine.put("proc/x", "a b \n\n");
  machine.put("proc/number", "9000");
  machine.put("proc/empty", "");
  EXPECT_EQ(machine.view().read("/proc/x"), "a b");
  EXPECT_EQ(machine.view().read("/proc/empty"), "");
  EXPECT_EQ(machine.view().read("/proc/y"), std::nullopt);
  EXPECT_EQ(machine.view().read("/proc"), std::nullopt) << "a directory";
  EXPECT_EQ(machine.view().read_number("/proc/number"), 9000U);
  EXPECT_EQ(machine.view().read_number("/proc/x"), std::nullopt);
}

TEST(system_view, run__a_command_of_this_machine) {
  const SystemView here;
  EXPECT_TRUE(here.is_this_machine());
  EXPECT_EQ(here.run({"echo", "a  $HOME;b"}), "a  $HOME;b") << "no shell reads it";
  EXPECT_EQ(here.run({"false"}), std::nullopt);
  EXPECT_EQ(here.run({"no-such-command-of-bx"}), std::nullopt);
}

TEST(system_view, run__in_a_copy_is_a_file) {
  const FakeMachine machine;
  machine.put("commands/dcb_pfc_show", "text");
  EXPECT_EQ(machine.view().run({"dcb", "pfc", "show"}), "text");
  EXPECT_EQ(machine.view().run({"true"}), std::nullopt);
}

TEST(rdma_port, read_rdma_ports__of_a_connectx) {
  const FakeMachine machine;
  EXPECT_TRUE(read_rdma_ports(machine.view()).empty());
  machine.put_mlx5();
  const auto ports = read_rdma_ports(machine.view());
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports[0].driver, "mlx5_core");
  EXPECT_FALSE(ports[0].software());
  EXPECT_EQ(ports[0].gids.size(), 4U) << "the zero entry is not in use";
  EXPECT_EQ(ports[0].gids[3].address, "10.0.0.5");
  EXPECT_TRUE(ports[0].gids[1].link_local);
  EXPECT_EQ(ports[0].interface, "eth2");
}

TEST(rdma_port, path_mtu__is_what_fits_with_the_headers) {
  RdmaPort port;
  for (const auto& [interface, path] :
       {std::pair{9000U, 4096U}, {4192U, 4096U}, {4191U, 2048U}, {1500U, 1024U}, {300U, 0U}}) {
    port.interface_mtu = interface;
    EXPECT_EQ(port.path_mtu(), path) << interface;
  }
}

TEST(rdma_port, gid_address__of_either_family) {
  EXPECT_EQ(gid_address("0000:0000:0000:0000:0000:ffff:0a4d:0001"), "10.77.0.1");
  EXPECT_EQ(gid_address("fd77:0000:0000:0000:0000:0000:0000:0002"), "fd77::2");
  EXPECT_EQ(gid_address("odd"), "odd");
}

TEST(ethtool, parse_ethtool__passes_over_what_is_no_count) {
  const auto counts =
      parse_ethtool("NIC statistics:\n     rx_packets: 12\n  odd\n     [0]: tx: 7\n     bad: x\n");
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts[0].name, "rx_packets");
  EXPECT_EQ(counts[0].value, 12U);
  EXPECT_EQ(counts[1].name, "[0]: tx");
  EXPECT_TRUE(parse_ethtool("").empty());
}

TEST(ethtool, read_interface_counters__of_an_interface_that_is_not_there) {
  EXPECT_TRUE(read_interface_counters(SystemView(), "bx-none").empty());
}

}  // namespace
}  // namespace bx::harness
