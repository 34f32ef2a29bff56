// SPDX-License-Identifier: GPL-2.0-only
// What `bx perf sim` measures: the cost of the network model for an incast, with and without things that
// stand idle beside it, and for a fabric of a thousand hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/provider/raw_traffic.h"
#include "sim/provider/sim_config.h"

namespace bx::harness {

struct SimCase {
  std::string_view name;
  std::string_view sentence;
  sim::SimConfig config{};
  std::vector<sim::RawFlow> flows{};
  std::size_t idle_pairs = 0;      // connected queue pairs between hosts 0 and 1 that nothing uses
  sim::Picoseconds idle_before{};  // simulated time in which nothing happens, before the flows
};
std::vector<SimCase> sim_cases();

struct SimMeasurement {
  std::uint64_t packets = 0;  // data packets delivered, each counted once
  std::uint64_t events = 0;   // of the engine, from posting the flows to the end
  std::uint64_t digest = 0;   // of everything that arrived at hosts
  double seconds = 0;         // of real time, likewise
  double cpu_seconds = 0;     // of this process's time on a core, which others on the machine disturb less
  double peak_mib = 0;        // resident memory of the process at its largest
};

// Runs a case in a process of its own, so that its memory is its own. Errors: the process failed; the case
// did not end as it must (a defect of the model).
Result<SimMeasurement> measure(const SimCase& measured);
// The same in this process, for a profiler; peak_mib counts what was there before.
Result<SimMeasurement> measure_here(const SimCase& measured);

}  // namespace bx::harness
