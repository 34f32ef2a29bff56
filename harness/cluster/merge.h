// SPDX-License-Identifier: GPL-2.0-only
// One result of what the hosts of a run report, each by its own clock and of its own ends of the calls.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "harness/cluster/coordinator.h"
#include "harness/run/expectations.h"
#include "harness/run/variant_result.h"
#include "harness/workload/ledger.h"
#include "harness/workload/plan.h"

namespace bx::harness {

inline constexpr std::string_view kClockErrorMetric =
    "clock.error_max";  // ns, of any host against the coordinator's

// How long the hosts took, all together, to be ready (devices, memory), and to connect.
inline constexpr std::string_view kOpenTimeMetric = "run.open.time";
inline constexpr std::string_view kConnectTimeMetric = "run.connect.time";

class Merge {
 public:
  // All outlive it.
  Merge(const Settings& settings, const Plan& plan, Oracle& oracle)
      : settings_(settings), plan_(plan), oracle_(oracle), ledger_(plan.calls, oracle) {}

  // What there will be to measure, from what the hosts say when they are ready.
  [[nodiscard]] static Visible visible(const std::vector<AgentState>& agents);
  // Metrics, who waited for what, and breaches that hosts found or that show when both ends of a call are
  // compared. Of `killed` hosts it is not known what they saw.
  void take(const std::vector<AgentState>& agents, const std::set<std::uint32_t>& killed,
            std::int64_t measured_ns, VariantResult& result);
  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }

 private:
  void adopt(const AgentState& agent);
  void report_cpu(const std::vector<AgentState>& agents, std::int64_t measured_ns, MetricSet& metrics) const;

  const Settings& settings_;
  const Plan& plan_;
  Oracle& oracle_;
  Ledger ledger_;
};

}  // namespace bx::harness
