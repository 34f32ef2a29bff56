// SPDX-License-Identifier: GPL-2.0-only
// A machine that is not here: its /sys, /proc and the output of its commands as files, gone afterwards.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/machine/system_view.h"

namespace bx::harness {

class FakeMachine {
 public:
  FakeMachine()
      : root_(std::filesystem::path(testing::TempDir()) / ("bx-machine-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~FakeMachine() { std::filesystem::remove_all(root_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void link(const std::string& file, const std::string& target) const {
    const std::filesystem::path path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
  }
  void remove(const std::string& file) const { std::filesystem::remove_all(root_ / file); }
  [[nodiscard]] SystemView view() const { return SystemView(root_.string()); }

  // What every machine has, in good order: a recent kernel, rdma-core 44, no limit of locked memory.
  void put_system() const {
    put("proc/sys/kernel/osrelease", "6.1.0-9-amd64");
    link("usr/lib/x86_64-linux-gnu/libibverbs.so.1", "libibverbs.so.1.14.44.0");
    put("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max cpu time              unlimited            unlimited            seconds   \n"
        "Max locked memory         unlimited            unlimited            bytes     ");
    put("proc/self/status", "Name:\tbx\nCapEff:\t0000000000000000");
    put("proc/meminfo", "MemTotal:       32000000 kB\nHugePages_Free:      512\nHugepagesize:       2048 kB");
    put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    put("proc/self/cgroup", "0::/app.slice");
    put("sys/fs/cgroup/app.slice/memory.max", "max");
    put("sys/fs/cgroup/app.slice/cpu.max", "max 100000");
    put("sys/fs/cgroup/app.slice/rdma.max", "mlx5_0 hca_handle=max hca_object=max");
  }

  // A ConnectX at eth2, 10.0.0.5, with everything set as RoCE wants it.
  void put_mlx5() const {
    const std::string device = "sys/class/infiniband/mlx5_0";
    link(device + "/device/driver", "../../../bus/pci/drivers/mlx5_core");
    put("sys/module/mlx5_core/version", "5.8-2.0.3");
    put(device + "/fw_ver", "16.35.2000");
    put(device + "/ports/1/state", "4: ACTIVE");
    put(device + "/ports/1/link_layer", "Ethernet");
    put(device + "/ports/1/rate", "100 Gb/sec (4X EDR)");
    put_gid(0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "IB/RoCE v1");
    put_gid(1, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "RoCE v2");
    put_gid(2, "0000:0000:0000:0000:0000:ffff:0a00:0005", "IB/RoCE v1");
    put_gid(3, "0000:0000:0000:0000:0000:ffff:0a00:0005", "RoCE v2");
    put(device + "/ports/1/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000");
    put("sys/class/net/eth2/mtu", "9000");
    put("sys/class/net/eth2/ecn/roce_np/enable/3", "1");
    put("sys/class/net/eth2/ecn/roce_rp/enable/3", "1");
    put("commands/dcb_pfc_show_dev_eth2",
        "pfc-cap 8 macsec-bypass off delay 0 \nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off ");
    put("commands/dcb_-N_app_show_dev_eth2", "dscp-prio 26:3 48:6 ");
  }
  void put_gid(unsigned index, const std::string& gid, const std::string& type) const {
    const std::string port = "sys/class/infiniband/mlx5_0/ports/1";
    const std::string number = std::to_string(index);
    put(port + "/gids/" + number, gid);
    put(port + "/gid_attrs/types/" + number, type);
    put(port + "/gid_attrs/ndevs/" + number, "eth2");
  }

  void put_rxe() const {
    const std::string device = "sys/class/infiniband/rxe1";
    put(device + "/parent", "h1");
    put(device + "/ports/1/state", "4: ACTIVE");
    put(device + "/ports/1/link_layer", "Ethernet");
    put(device + "/ports/1/gids/0", "fe80:0000:0000:0000:0077:00ff:fe00:0001");
    put(device + "/ports/1/gid_attrs/types/0", "RoCE v2");
    put(device + "/ports/1/gid_attrs/ndevs/0", "h1");
    put(device + "/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001");
    put(device + "/ports/1/gid_attrs/types/1", "RoCE v2");
    put(device + "/ports/1/gid_attrs/ndevs/1", "h1");
    put("sys/class/net/h1/mtu", "9000");
  }

 private:
  std::filesystem::path root_;
};

}  // namespace bx::harness
