// SPDX-License-Identifier: GPL-2.0-only
#include "harness/doctor/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/harness/tools/fake_machine.h"

namespace bx::harness {
namespace {

using Level = Diagnosis::Level;

class Doctor : public ::testing::Test {
 protected:
  void SetUp() override { machine.put_system(); }
  [[nodiscard]] std::vector<Diagnosis> diagnose() const { return harness::diagnose(machine.view(), config); }
  // What is not ok, as "fail mtu".
  [[nodiscard]] std::vector<std::string> complaints() const {
    std::vector<std::string> found;
    for (const Diagnosis& one : diagnose()) {
      if (one.level == Level::ok) continue;
      found.push_back(std::string(to_string(one.level)) + " " + one.check);
      EXPECT_FALSE(one.remedy.empty()) << one.check;
    }
    return found;
  }
  [[nodiscard]] Diagnosis find(std::string_view check) const {
    for (Diagnosis& one : diagnose()) {
      if (one.check == check) return one;
    }
    ADD_FAILURE() << "no finding about " << check;
    return {};
  }
  using List = std::vector<std::string>;

  FakeMachine machine;
  Config config{};
};

TEST_F(Doctor, diagnose__without_a_device) {
  EXPECT_EQ(complaints(), List{"fail devices"});
  EXPECT_EQ(find("rdma-core").text, "rdma-core 44.0");
}

TEST_F(Doctor, diagnose__soft_roce_well_set) {
  machine.put_rxe();
  EXPECT_EQ(complaints(), List{});
  EXPECT_EQ(find("gid").text, "RoCE v2 of 10.77.0.1 (index 1, h1)");
  EXPECT_EQ(find("driver").text, "rdma_rxe");
}

TEST_F(Doctor, diagnose__mlx5_well_set) {
  machine.put_mlx5();
  EXPECT_EQ(complaints(), List{});
  EXPECT_EQ(find("driver").text, "mlx5_core 5.8-2.0.3, firmware 16.35.2000");
  EXPECT_EQ(find("gid").text, "RoCE v2 of 10.0.0.5 (index 3, eth2)");
  EXPECT_EQ(find("mtu").text, "9000 of eth2 carries a path MTU of 4096, path.mtu is 4096");
  EXPECT_EQ(find("traffic-class").text, "DSCP 26 (path.traffic_class 104) is priority 3");
  EXPECT_EQ(find("pfc").text, "on for priority 3");
}

TEST_F(Doctor, diagnose__mlx5_with_four_faults) {
  machine.put_mlx5();
  machine.put("sys/class/net/eth2/mtu", "1500");
  machine.put("sys/class/net/eth2/ecn/roce_rp/enable/3", "0");
  machine.put(
      "commands/dcb_pfc_show_dev_eth2",
      "pfc-cap 8 macsec-bypass off delay 0 \nprio-pfc 0:off 1:off 2:off 3:off 4:off 5:off 6:off 7:off ");
  machine.put("proc/self/limits",
              "Max locked memory         8388608              8388608              bytes     ");
  EXPECT_EQ(complaints(), (List{"fail memory-lock", "warn mtu", "fail pfc", "warn ecn"}));
  EXPECT_EQ(find("mtu").text, "1500 of eth2 carries a path MTU of 1024, path.mtu is 4096");
  EXPECT_EQ(
      find("ecn").remedy,
      "echo 1 > /sys/class/net/eth2/ecn/roce_np/enable/3; echo 1 > /sys/class/net/eth2/ecn/roce_rp/enable/3");
}

TEST_F(Doctor, diagnose__a_port_that_is_down_or_of_another_network) {
  machine.put_mlx5();
  machine.put("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  EXPECT_EQ(complaints(), List{"fail link"});
  machine.put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
  EXPECT_EQ(complaints(), List{"fail link"});
  EXPECT_EQ(find("link").text, "the link layer is InfiniBand");
}

TEST_F(Doctor, diagnose__the_device_s_mtu_beside_the_interface_s) {
  machine.put_mlx5();
  const std::string head =
      "hca_id:\tmlx5_0\n\tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tmax_mtu:\t\t4096 (5)\n";
  machine.put("commands/ibv_devinfo_-d_mlx5_0", head + "\t\t\tactive_mtu:\t\t4096 (5)\n");
  EXPECT_EQ(complaints(), List{});
  machine.put("commands/ibv_devinfo_-d_mlx5_0", head + "\t\t\tactive_mtu:\t\t1024 (3)\n");
  EXPECT_EQ(complaints(), List{"warn mtu"});
  EXPECT_NE(find("mtu").text.find("but the device's is 1024"), std::string::npos);
}

TEST_F(Doctor, diagnose__a_gid_by_type_and_address) {
  machine.put_mlx5();
  machine.put_gid(3, "fd77:0000:0000:0000:0000:0000:0000:0005", "RoCE v2");
  EXPECT_EQ(find("gid").text, "RoCE v2 of fd77::5 (index 3, eth2)");
  machine.put_gid(3, "0000:0000:0000:0000:0000:ffff:0a00:0005", "IB/RoCE v1");
  EXPECT_EQ(complaints(), List{"fail gid"});
  EXPECT_EQ(find("gid").text, "RoCE v2 of a link-local address only");
  machine.put_gid(1, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "IB/RoCE v1");
  EXPECT_EQ(find("gid").text, "4 GIDs, none of RoCE v2");
}

TEST_F(Doctor, diagnose__what_the_driver_does_not_show_is_a_warning) {
  machine.put_mlx5();
  machine.remove("commands");
  machine.remove("sys/class/net/eth2/ecn");
  EXPECT_EQ(complaints(), (List{"warn traffic-class", "warn pfc", "warn ecn"}));
}

TEST_F(Doctor, diagnose__the_traffic_class_chooses_the_priority) {
  machine.put_mlx5();
  config.path_traffic_class = 192;  // DSCP 48, which is priority 6 here
  EXPECT_EQ(complaints(), (List{"fail pfc", "warn ecn"}));
  EXPECT_EQ(find("pfc").text, "off for priority 6: packets are lost when a queue is full");
}

TEST_F(Doctor, diagnose__memory_lock_by_limit_size_and_capability) {
  machine.put_rxe();
  machine.put("proc/self/limits",
              "Max locked memory         8388608              unlimited            bytes     ");
  EXPECT_EQ(complaints(), List{"fail memory-lock"});
  config.memory_arena = 8'388'608;
  EXPECT_EQ(complaints(), List{});
  config.memory_arena = 8'388'609;
  machine.put("proc/self/status", "CapEff:\t0000000000004000");
  EXPECT_EQ(complaints(), List{}) << "CAP_IPC_LOCK";
}

TEST_F(Doctor, diagnose__huge_pages_of_either_kind) {
  machine.put_rxe();
  machine.put("proc/meminfo", "HugePages_Free:        0\nHugepagesize:       2048 kB");
  EXPECT_EQ(complaints(), List{}) << "transparent ones";
  machine.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_EQ(complaints(), List{"warn huge-pages"});
  EXPECT_NE(find("huge-pages").remedy.find("vm.nr_hugepages=128"), std::string::npos);
}

TEST_F(Doctor, diagnose__limits_of_the_cgroup) {
  machine.put_rxe();
  machine.put("sys/fs/cgroup/app.slice/memory.max", "100000000");
  machine.put("sys/fs/cgroup/app.slice/cpu.max", "50000 100000");
  machine.put("sys/fs/cgroup/app.slice/rdma.max", "rxe1 hca_handle=2 hca_object=2000");
  EXPECT_EQ(complaints(), (List{"fail cgroup-memory", "warn cgroup-rdma", "warn cgroup-cpu"}));
}

TEST_F(Doctor, diagnose__an_old_kernel_and_no_library) {
  machine.put_rxe();
  machine.put("proc/sys/kernel/osrelease", "5.10.0-8-amd64");
  machine.remove("usr");
  EXPECT_EQ(complaints(), (List{"warn kernel", "fail rdma-core"}));
  machine.put("proc/sys/kernel/osrelease", "5.12.0");
  EXPECT_EQ(complaints(), List{"fail rdma-core"});
}

TEST_F(Doctor, diagnoses_json__has_every_finding) {
  const auto found = diagnose();
  const auto json = nlohmann::json::parse(diagnoses_json(found));
  ASSERT_EQ(json.at("findings").size(), found.size());
  EXPECT_EQ(json.at("findings").back().at("level"), "fail");
  EXPECT_EQ(json.at("findings").back().at("check"), "devices");
  EXPECT_NE(render_diagnoses(found).find("1 fail"), std::string::npos);
}

}  // namespace
}  // namespace bx::harness
