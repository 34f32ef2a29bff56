// SPDX-License-Identifier: GPL-2.0-only
// The RDMA ports of a machine as Linux shows them in /sys/class/infiniband, without opening a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/machine/system_view.h"

namespace bx::harness {

struct PortGid {
  unsigned index = 0;
  std::string address;    // "10.77.0.1" of an IPv4-mapped GID, else the IPv6 address
  std::string type;       // "RoCE v2", "IB/RoCE v1"
  std::string interface;  // the network interface it belongs to
  bool ipv4 = false;
  bool link_local = false;

  [[nodiscard]] bool roce_v2() const { return type == "RoCE v2"; }
};

struct RdmaPort {
  std::string device;
  unsigned port = 1;
  std::string driver;      // "mlx5_core"; "rdma_rxe" of a device without hardware
  std::string firmware;    // or empty
  std::string state;       // "ACTIVE"
  std::string link_layer;  // "Ethernet", "InfiniBand"
  std::string rate;        // "100 Gb/sec (4X EDR)"
  std::string interface;   // of its first GID, or empty
  std::uint64_t interface_mtu = 0;
  unsigned active_mtu = 0;  // of the device, as ibv_devinfo says; 0 if that is not there
  std::vector<PortGid> gids;

  [[nodiscard]] bool software() const { return driver == "rdma_rxe" || driver == "siw"; }
  // The largest RoCE path MTU that fits into the interface's: 256 to 4096, or 0.
  [[nodiscard]] unsigned path_mtu() const;
};

inline constexpr unsigned kPortsMax = 16;
inline constexpr unsigned kGidsMax = 256;
// What Linux keeps of the interface's MTU (iboe_get_mtu): IPv6 40, UDP 8, BTH 12, XRC header 4, atomic header
// 28, ICRC 4.
inline constexpr unsigned kRoceOverhead = 96;

// Of all devices, by name and port.
std::vector<RdmaPort> read_rdma_ports(const SystemView& system);

// The active MTU of a port in the output of `ibv_devinfo -d DEVICE`, or 0.
unsigned parse_active_mtu(const std::string& text, unsigned port);

// "0000:...:ffff:0a4d:0001" as sysfs writes a GID: "10.77.0.1"; what is no GID is given back.
std::string gid_address(const std::string& gid);

}  // namespace bx::harness
