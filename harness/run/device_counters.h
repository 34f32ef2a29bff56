// SPDX-License-Identifier: GPL-2.0-only
// What a machine counts of its RDMA traffic, from three places, each by its own names:
//
//   device.*   /sys/class/infiniband/DEVICE/ports/PORT/{hw_counters,counters}
//   ethtool.*  the driver of the interface, of which those about pauses, discards, ECN and lost buffers
//   tc.*       the queueing disciplines of the interface (tc -s), summed
//
// and what means the same on every device once more under the name that the simulator uses: `nic.rnr_naks` is
// RNR NAKs sent, whatever the driver calls them (counter_names.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/ethtool.h"
#include "harness/machine/system_view.h"
#include "harness/measure/metric_set.h"
#include "libbx/base/metrics.h"

namespace bx::harness {

using DeviceCounter = NamedCount;

// Of the device's port, in the order of their names; of a name in both folders the hardware's. Empty if there
// is no such port. `sysfs` is another root for tests.
std::vector<DeviceCounter> read_device_counters(const std::string& device, unsigned port,
                                                const std::string& sysfs = "/sys");

// Sums over the disciplines of `interfaces` in what `tc -j -s qdisc show` says: packets, bytes, drops,
// overlimits, requeues. Empty for what is no such text.
std::vector<NamedCount> parse_qdiscs(const std::string& json, const std::vector<std::string>& interfaces);

// The following two are called again and again, and give the same names each time.
// `device.*` of the port, and `ethtool.*` of `interface` unless that is empty.
void report_device(const SystemView& system, const std::string& device, unsigned port,
                   const std::string& interface, MetricSink& sink);
// `tc.*`, by one command for all of them.
void report_qdiscs(const SystemView& system, const std::vector<std::string>& interfaces, MetricSink& sink);

struct CountedPort {
  std::string device;  // "mlx5_0"
  unsigned port = 1;
};
// The port that has a GID of this IPv4 or IPv6 address; of the device called `device`, unless that is empty.
// Nothing if there is none.
std::optional<CountedPort> find_device_port(const std::string& address, const std::string& device,
                                            const std::string& sysfs = "/sys");

// All of the above of some ports, added up, since it was made: devices count from when they were.
class PortCounters {
 public:
  explicit PortCounters(std::vector<CountedPort> ports, SystemView system = SystemView());
  void report(MetricSink& sink) const;

 private:
  void count(MetricSink& sink) const;
  // The port's interface, and the other end of a link that scripts/rxe made: h3 and p3.
  [[nodiscard]] std::vector<std::string> interfaces_of(const CountedPort& port) const;

  SystemView system_;
  std::vector<CountedPort> ports_;
  MetricSet before_;
};

}  // namespace bx::harness
