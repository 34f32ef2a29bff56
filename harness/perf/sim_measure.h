// SPDX-License-Identifier: GPL-2.0-only
// Measures a case of `bx perf sim`.
#pragma once

#include <cstdint>

#include "harness/perf/sim_cases.h"
#include "libbx/base/result.h"

namespace bx::harness {

struct SimMeasurement {
  std::uint64_t packets = 0;  // data packets delivered, each counted once
  std::uint64_t events = 0;   // of the engine, from posting the flows to the end
  std::uint64_t digest = 0;   // of everything that arrived at hosts
  double seconds = 0;         // of real time, likewise
  double cpu_seconds = 0;     // of this process's time on a core, which others on the machine disturb less
  double peak_mib = 0;        // resident memory of the process at its largest
  // What was allocated for each; 0 where the case has none, or the C library does not tell.
  double switch_port_bytes = 0;  // with its share of routes and of what a switch has once
  double queue_pair_bytes = 0;   // connected, before it has sent anything; with its share of tables
  double session_bytes = 0;
};

// Runs a case in a process of its own, so that its memory is its own. Errors: the process failed; the case
// did not end as it must (a defect of the model).
Result<SimMeasurement> measure(const SimCase& measured);
// The same in this process, for a profiler; peak_mib counts what was there before.
Result<SimMeasurement> measure_here(const SimCase& measured);

}  // namespace bx::harness
