// SPDX-License-Identifier: GPL-2.0-only
// What holds for one port and the network interface it belongs to. PFC and the map of DSCPs to priorities are
// asked of dcb(8), ECN of the files of mlx5's driver; a driver that shows neither gives a warning and no
// verdict.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/doctor/doctor.h"

namespace bx::harness {
namespace {

using enum Diagnosis::Level;

class PortDoctor {
 public:
  PortDoctor(const SystemView& system, const RdmaPort& port, const Config& config)
      : system_(system), port_(port), config_(config) {}

  std::vector<Diagnosis> diagnose() {
    check_driver();
    check_state();
    if (port_.link_layer != "Ethernet") return std::move(out_);
    check_gids();
    check_mtu();
    if (port_.software()) {
      add(ok, "lossless", "a software device: no PFC, ECN or traffic class to configure");
    } else if (!port_.interface.empty()) {
      check_lossless();
    }
    return std::move(out_);
  }

 private:
  void add(Diagnosis::Level level, std::string check, std::string text, std::string remedy = {}) {
    out_.push_back({level, fmt::format("{} port {}", port_.device, port_.port), std::move(check),
                    std::move(text), std::move(remedy)});
  }

  void check_driver() {
    const auto version = system_.read(fmt::format("/sys/module/{}/version", port_.driver));
    add(ok, "driver",
        fmt::format("{}{}{}", port_.driver, version ? " " + *version : "",
                    port_.firmware.empty() || port_.software() ? "" : ", firmware " + port_.firmware));
  }

  void check_state() {
    if (port_.link_layer != "Ethernet") {
      return add(fail, "link", fmt::format("the link layer is {}", port_.link_layer),
                 "only RoCE (Ethernet) is supported; set the port's link type to Ethernet if the NIC can");
    }
    if (port_.state == "ACTIVE") {
      return add(ok, "link", fmt::format("active{}{}", port_.rate.empty() ? "" : ", ", port_.rate));
    }
    add(fail, "link", fmt::format("the port is {}", port_.state),
        port_.interface.empty()
            ? std::string("bring its network interface up")
            : fmt::format("ip link set {} up, and look at the cable and the switch port", port_.interface));
  }

  void check_gids() {
    const PortGid* best = nullptr;
    for (const PortGid& gid : port_.gids) {
      if (!gid.roce_v2() || gid.link_local) continue;
      if (best == nullptr || (gid.ipv4 && !best->ipv4)) best = &gid;
    }
    if (best != nullptr) {
      return add(ok, "gid",
                 fmt::format("RoCE v2 of {} (index {}, {})", best->address, best->index, best->interface));
    }
    const bool v2 = std::ranges::any_of(port_.gids, &PortGid::roce_v2);
    const std::string interface = port_.interface.empty() ? "INTERFACE" : port_.interface;
    if (v2) {
      return add(fail, "gid", "RoCE v2 of a link-local address only",
                 fmt::format("give the interface an address: ip addr add 10.0.0.1/24 dev {}", interface));
    }
    add(fail, "gid",
        port_.gids.empty() ? "the port has no GID"
                           : fmt::format("{} GIDs, none of RoCE v2", port_.gids.size()),
        port_.gids.empty()
            ? fmt::format("give the interface an address: ip addr add 10.0.0.1/24 dev {}", interface)
            : "enable RoCE v2 in the driver or firmware (cma_roce_mode, mlxconfig)");
  }

  void check_mtu() {
    constexpr unsigned kBest = 4096;
    if (port_.interface.empty() || port_.interface_mtu == 0) {
      return add(warn, "mtu", "the interface's MTU cannot be told",
                 "see ip link; 4200 or more carries a path MTU of 4096");
    }
    const std::string text =
        fmt::format("{} of {} carries a path MTU of {}, path.mtu is {}", port_.interface_mtu, port_.interface,
                    port_.path_mtu(), config_.path_mtu);
    if (port_.active_mtu != 0 && port_.active_mtu < port_.path_mtu()) {
      return add(warn, "mtu", fmt::format("{}, but the device's is {}", text, port_.active_mtu),
                 "set the device's MTU (mlxconfig, or take the interface down and up), or lower path.mtu");
    }
    if (port_.path_mtu() >= std::min<std::uint64_t>(kBest, config_.path_mtu)) return add(ok, "mtu", text);
    add(port_.path_mtu() == 0 ? fail : warn, "mtu", text,
        fmt::format("ip link set {} mtu 9000, here, at the peers and at every switch", port_.interface));
  }

  void check_lossless() {
    const unsigned dscp = static_cast<unsigned>(config_.path_traffic_class >> 2U);
    const std::optional<unsigned> mapped = priority_of(dscp);
    // Without a map the NIC takes the top three bits of the traffic class.
    const unsigned priority = mapped.value_or(dscp >> 3U);
    if (mapped) {
      add(ok, "traffic-class",
          fmt::format("DSCP {} (path.traffic_class {}) is priority {}", dscp, config_.path_traffic_class,
                      priority));
    } else {
      add(warn, "traffic-class",
          fmt::format("no map of DSCP {} (path.traffic_class {}) to a priority is visible; {} is assumed",
                      dscp, config_.path_traffic_class, priority),
          fmt::format("trust DSCPs: mlnx_qos -i {0} --trust dscp, or dcb app add dev {0} dscp-prio {1}:{2}",
                      port_.interface, dscp, priority));
    }
    check_pfc(priority);
    check_ecn(priority);
  }

  // What "dscp-prio 26:3 48:6" says of `dscp`.
  [[nodiscard]] std::optional<unsigned> priority_of(unsigned dscp) const {
    const auto map = system_.run({"dcb", "-N", "app", "show", "dev", port_.interface});
    const std::size_t at = map ? map->find("dscp-prio") : std::string::npos;
    if (at == std::string::npos) return std::nullopt;
    const std::string line = map->substr(at, map->find('\n', at) - at) + " ";
    const std::string wanted = fmt::format(" {}:", dscp);
    const std::size_t entry = line.find(wanted);
    if (entry == std::string::npos) return std::nullopt;
    const char digit = line[entry + wanted.size()];
    if (digit < '0' || digit > '7') return std::nullopt;
    return static_cast<unsigned>(digit - '0');
  }

  void check_pfc(unsigned priority) {
    const auto text = system_.run({"dcb", "pfc", "show", "dev", port_.interface});
    const std::size_t at = text ? text->find("prio-pfc") : std::string::npos;
    const std::string remedy = fmt::format(
        "dcb pfc set dev {0} prio-pfc {1}:on (or mlnx_qos -i {0} --pfc), and on the "
        "switch; global pause off: ethtool -A {0} rx off tx off",
        port_.interface, priority);
    if (at == std::string::npos) {
      return add(warn, "pfc", "its configuration is not visible (no dcb, or no answer from the driver)",
                 "install iproute2's dcb; " + remedy);
    }
    const std::string line = text->substr(at, text->find('\n', at) - at);
    if (line.find(fmt::format(" {}:on", priority)) != std::string::npos) {
      return add(ok, "pfc", fmt::format("on for priority {}", priority));
    }
    add(fail, "pfc", fmt::format("off for priority {}: packets are lost when a queue is full", priority),
        remedy);
  }

  void check_ecn(unsigned priority) {
    const std::string folder = fmt::format("/sys/class/net/{}/ecn", port_.interface);
    const auto receiver = system_.read_number(fmt::format("{}/roce_np/enable/{}", folder, priority));
    const auto sender = system_.read_number(fmt::format("{}/roce_rp/enable/{}", folder, priority));
    if (!receiver || !sender) {
      return add(warn, "ecn", "congestion control is not visible",
                 "see the driver's manual for DCQCN; marking is the switch's to do");
    }
    if (*receiver != 0 && *sender != 0) {
      return add(ok, "ecn", fmt::format("congestion control is on for priority {}, both ends", priority));
    }
    add(warn, "ecn",
        fmt::format("congestion control for priority {}: notification {}, reaction {}", priority,
                    *receiver != 0 ? "on" : "off", *sender != 0 ? "on" : "off"),
        fmt::format("echo 1 > {0}/roce_np/enable/{1}; echo 1 > {0}/roce_rp/enable/{1}", folder, priority));
  }

  const SystemView& system_;
  const RdmaPort& port_;
  const Config& config_;
  std::vector<Diagnosis> out_;
};

}  // namespace

std::vector<Diagnosis> diagnose_port(const SystemView& system, const RdmaPort& port, const Config& config) {
  return PortDoctor(system, port, config).diagnose();
}

}  // namespace bx::harness
