// SPDX-License-Identifier: GPL-2.0-only
// The measurement of `bx perf verbs` as a whole: raw verbs first, then the library, over the same host.
#pragma once

#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/perf/points.h"
#include "libbx/fabric/fabric.h"

namespace bx::harness {

// The passive end, for one client. The error is a sentence.
Parsed<void> serve_perf(fabric::Host& host);
// The measuring end.
Parsed<std::vector<PerfPoint>> measure_perf(fabric::Host& host, const std::string& peer,
                                            const PerfPlan& plan);
// Both ends in this process, which their fabric must allow: one clock, one run loop.
Parsed<std::vector<PerfPoint>> measure_perf_here(fabric::Fabric& fabric, const PerfPlan& plan);

// Rows by size, columns by case; latencies in microseconds, bandwidths in MB/s, each with its tenth and
// ninetieth percentile. Then the library's bandwidth as a share of the raw one, where both were measured.
std::string render_points(const std::vector<PerfPoint>& points);
std::string points_json(const std::vector<PerfPoint>& points, std::string_view fabric);

}  // namespace bx::harness
