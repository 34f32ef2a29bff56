// SPDX-License-Identifier: GPL-2.0-only
// What this machine's processor and NIC cost, in the terms of the simulator's hosts (HostCpuCosts), as a file
// that a scenario includes by fabric.host_file.
//
// Each post, poll and copy is timed on its own, on two queue pairs of one device that are connected to each
// other; the NIC's latencies follow from the time of a small WRITE to another host. Medians. What cannot be
// timed like this (what resuming the application costs with cold caches) stays as it is and is not in the
// file.
#pragma once

#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/perf/points.h"
#include "libbx/fabric/fabric.h"

namespace bx::harness {

struct Calibration {
  double turn_ns = 0;
  double completion_ns = 0;
  double empty_poll_ns = 0;
  double send_ns = 0;
  double doorbell_ns = 0;
  double receive_ns = 0;
  double copy_bytes_per_second = 0;
  double nic_ns = 0;  // tx_latency and rx_latency each; 0 if there was no other host
};

// `host` is idle. Takes about a second of real time.
Parsed<Calibration> calibrate(fabric::Host& host);
// Half of what a small WRITE took, less what the processor has to do with it. Nothing without such a point.
double nic_latency_ns(const Calibration& costs, const std::vector<PerfPoint>& points);
// The text of the file.
std::string host_file_text(const Calibration& costs, std::string_view machine);

}  // namespace bx::harness
