// SPDX-License-Identifier: GPL-2.0-only
// What an RDMA device counts, as Linux shows it:
// /sys/class/infiniband/DEVICE/ports/PORT/{hw_counters,counters}. Drivers name their counters differently, so
// names are passed on as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bx::harness {

struct DevicePortName {
  std::string device;  // "mlx5_0"
  unsigned port = 1;
};
// The port that has a GID of this IPv4 or IPv6 address; of the device called `device`, unless that is empty.
// Nothing if there is none.
std::optional<DevicePortName> find_device_port(const std::string& address, const std::string& device,
                                               const std::string& sysfs = "/sys");

struct DeviceCounter {
  std::string name;
  std::uint64_t value = 0;
};

// In the order of their names; of a name in both folders the hardware's. Empty if there is no such port.
// `sysfs` is another root for tests.
std::vector<DeviceCounter> read_device_counters(const std::string& device, unsigned port,
                                                const std::string& sysfs = "/sys");

}  // namespace bx::harness
