// SPDX-License-Identifier: GPL-2.0-only
#include "harness/machine/rdma_port.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace bx::harness {
namespace {

constexpr const char* kDevices = "/sys/class/infiniband";

// "4: ACTIVE" is "ACTIVE".
std::string word_of(const std::string& text) {
  const std::size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

std::string driver_of(const SystemView& system, const std::string& device) {
  if (const auto driver = system.link_name(fmt::format("{}/{}/device/driver", kDevices, device)))
    return *driver;
  // A software device has a parent interface instead of hardware.
  if (system.exists(fmt::format("{}/{}/parent", kDevices, device))) {
    return device.starts_with("siw") ? "siw" : "rdma_rxe";
  }
  return "unknown";
}

std::vector<PortGid> read_gids(const SystemView& system, const std::string& port) {
  std::vector<PortGid> gids;
  for (unsigned index = 0; index < kGidsMax; ++index) {
    const auto raw = system.read(fmt::format("{}/gids/{}", port, index));
    if (!raw) break;
    // Entries that are not in use are zero, and their type cannot be read.
    const auto type = system.read(fmt::format("{}/gid_attrs/types/{}", port, index));
    if (!type || type->empty() || raw->find_first_not_of("0:") == std::string::npos) continue;
    PortGid gid;
    gid.index = index;
    gid.type = *type;
    gid.address = gid_address(*raw);
    gid.ipv4 = gid.address.find('.') != std::string::npos;
    gid.link_local = gid.address.starts_with("fe80:");
    gid.interface = system.read(fmt::format("{}/gid_attrs/ndevs/{}", port, index)).value_or("");
    gids.push_back(std::move(gid));
  }
  return gids;
}

}  // namespace

unsigned RdmaPort::path_mtu() const {
  for (const unsigned mtu : {4096U, 2048U, 1024U, 512U, 256U}) {
    if (interface_mtu >= mtu + kRoceOverhead) return mtu;
  }
  return 0;
}

unsigned parse_active_mtu(const std::string& text, unsigned port) {
  const std::size_t section = text.find(fmt::format("port:\t{}\n", port));
  constexpr std::string_view kKey = "active_mtu:";
  const std::size_t key = section == std::string::npos ? section : text.find(kKey, section);
  if (key == std::string::npos) return 0;
  const std::size_t number = text.find_first_not_of(" \t", key + kKey.size());
  unsigned mtu = 0;
  if (number != std::string::npos) std::from_chars(text.data() + number, text.data() + text.size(), mtu);
  return mtu;
}

std::string gid_address(const std::string& gid) {
  in6_addr address{};
  if (::inet_pton(AF_INET6, gid.c_str(), &address) != 1) return gid;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    return fmt::format("{}.{}.{}.{}", address.s6_addr[12], address.s6_addr[13], address.s6_addr[14],
                       address.s6_addr[15]);
  }
  char text[INET6_ADDRSTRLEN] = "";
  return ::inet_ntop(AF_INET6, &address, text, sizeof text) == nullptr ? gid : text;
}

std::vector<RdmaPort> read_rdma_ports(const SystemView& system) {
  std::vector<RdmaPort> ports;
  for (const std::string& device : system.list(kDevices)) {
    const std::string base = fmt::format("{}/{}", kDevices, device);
    for (unsigned number = 1; number <= kPortsMax; ++number) {
      const std::string path = fmt::format("{}/ports/{}", base, number);
      if (!system.exists(path)) break;
      RdmaPort port;
      port.device = device;
      port.port = number;
      port.driver = driver_of(system, device);
      port.firmware = system.read(base + "/fw_ver").value_or("");
      port.state = word_of(system.read(path + "/state").value_or("unknown"));
      port.link_layer = system.read(path + "/link_layer").value_or("unknown");
      port.rate = system.read(path + "/rate").value_or("");
      port.gids = read_gids(system, path);
      const auto named =
          std::ranges::find_if(port.gids, [](const PortGid& gid) { return !gid.interface.empty(); });
      port.interface =
          named != port.gids.end() ? named->interface : system.read(base + "/parent").value_or("");
      if (!port.interface.empty()) {
        port.interface_mtu =
            system.read_number(fmt::format("/sys/class/net/{}/mtu", port.interface)).value_or(0);
      }
      port.active_mtu = parse_active_mtu(system.run({"ibv_devinfo", "-d", device}).value_or(""), number);
      ports.push_back(std::move(port));
    }
  }
  return ports;
}

}  // namespace bx::harness
