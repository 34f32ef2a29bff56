// SPDX-License-Identifier: GPL-2.0-only
// What can be seen of a simulated network from outside: a sample for time series, the metrics of a result,
// and whether it has kept its promises.
#pragma once

#include "libbx/base/metrics.h"
#include "sim/provider/sim_fabric.h"
#include "sim/provider/sim_network.h"

namespace bx::sim {

[[nodiscard]] NetworkSample sample_network(SimNetwork& network);
void report_network(const SimNetwork& network, MetricSink& sink);
[[nodiscard]] Audit audit_network(SimNetwork& network);

}  // namespace bx::sim
