// SPDX-License-Identifier: GPL-2.0-only
// What an RDMA device counts, as Linux shows it:
// /sys/class/infiniband/DEVICE/ports/PORT/{hw_counters,counters}. Drivers name their counters differently, so
// names are passed on as they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bx::harness {

struct DeviceCounter {
  std::string name;
  std::uint64_t value = 0;
};

// In the order of their names; of a name in both folders the hardware's. Empty if there is no such port.
// `sysfs` is another root for tests.
std::vector<DeviceCounter> read_device_counters(const std::string& device, unsigned port,
                                                const std::string& sysfs = "/sys");

}  // namespace bx::harness
