// SPDX-License-Identifier: GPL-2.0-only
// Drivers name the same thing differently. This says what a driver's counter is under the names of
// docs/results.md, which are the simulator's where it counts the same.
//
// Sources: rdma_rxe of Linux 6.1 (rxe_hw_counters.h and where each is counted), mlx5's hw_counters and the
// kernel's "Ethtool counters" of mlx5. A NAK is counted where it is sent on one driver and where it arrives
// on another: those are two names, `..._rx` the latter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bx::harness {

struct StandardMetric {
  std::string name;
  std::string unit = "count";
  double factor = 1;  // of the driver's number
};

// None for a counter that only its driver has.
std::vector<StandardMetric> standard_metrics(std::string_view driver_name);

// Whether SoftRoCE counts what the simulator calls by this name.
bool is_counted_by_rxe(std::string_view metric);

}  // namespace bx::harness
