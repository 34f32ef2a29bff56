// SPDX-License-Identifier: GPL-2.0-only
#include "harness/cluster/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/workload/outcome.h"

namespace bx::harness {
namespace {

void add(const MetricSet& from, MetricSet& to) {
  for (const Metric& metric : from.all()) {
    if (metric.level) {
      to.level(metric.name, metric.value, metric.unit);
    } else {
      to.metric(metric.name, metric.value, metric.unit);
    }
  }
}

Instant converted(const ClockOffset& clock, Instant agent) {
  return Instant{} + Duration(clock.to_coordinator(agent.time_since_epoch().count()));
}

bool is_client(const Settings& settings, std::uint32_t host) {
  return std::ranges::any_of(settings.workloads, [&](const WorkloadSpec& workload) {
    return std::ranges::find(workload.clients, host) != workload.clients.end();
  });
}

}  // namespace

Visible Merge::visible(const std::vector<AgentState>& agents) {
  Visible visible{.counters = {}, .closed_form = false, .cpu = true};
  for (const AgentState& agent : agents) add(agent.ready.counters, visible.counters);
  for (const std::string_view name : {kClockErrorMetric, kOpenTimeMetric, kConnectTimeMetric}) {
    visible.counters.set(name, 0, "ns");
  }
  declare_requests(visible.counters);
  return visible;
}

void Merge::take(const std::vector<AgentState>& agents, const std::set<std::uint32_t>& killed,
                 std::int64_t measured_ns, VariantResult& result) {
  MetricSet counters;
  std::int64_t clock_error = 0;
  std::set<std::uint32_t> lost = killed;
  for (const AgentState& agent : agents) {
    if (!agent.reported) lost.insert(agent.host);
    adopt(agent);
    add(agent.report.metrics, counters);
    clock_error = std::max(clock_error, agent.clock.error_max());
    for (const Breach& breach : agent.report.breaches) oracle_.breach(breach.promise, breach.detail);
    if (result.hang.reason.empty()) continue;
    result.hang.waits.insert(result.hang.waits.end(), agent.report.waits.begin(), agent.report.waits.end());
  }
  ledger_.hold_together([&](std::uint32_t server) { return lost.contains(server); });
  if (plan_.calls != 0) {
    report_outcome(plan_, ledger_, nullptr, result.metrics);
    report_requests(plan_, ledger_, result.metrics);
  }
  report_cpu(agents, measured_ns, result.metrics);
  result.metrics.set(kClockErrorMetric, static_cast<double>(clock_error), "ns");
  for (const Metric& metric : counters.all()) result.metrics.set(metric.name, metric.value, metric.unit);
}

void Merge::adopt(const AgentState& agent) {
  const auto judge = [&](const Result<>& adopted, std::uint64_t call) {
    if (adopted) return;
    oracle_.breach(promise::kOnce,
                   fmt::format("host{} told of call {}: {}", agent.host, call, adopted.error().detail));
  };
  for (const SeenCall& seen : agent.report.calls) {
    CallRecord record = seen.record;
    record.start = converted(agent.clock, record.start);
    // Of a call that is under way there is no end.
    record.end = record.state == CallState::started ? record.start : converted(agent.clock, record.end);
    judge(ledger_.adopt_call(seen.call, record, seen.code), seen.call);
  }
  for (const SeenRequest& seen : agent.report.requests) {
    const Instant at = Instant{} + Duration(agent.clock.to_coordinator(seen.at_ns));
    judge(ledger_.adopt_request(seen.call, seen.server, at), seen.call);
  }
}

void Merge::report_cpu(const std::vector<AgentState>& agents, std::int64_t measured_ns,
                       MetricSet& metrics) const {
  for (const bool clients : {true, false}) {
    double used = 0;
    double hosts = 0;
    for (const AgentState& agent : agents) {
      if (is_client(settings_, agent.host) != clients) continue;
      used += static_cast<double>(agent.report.cpu_ns);
      ++hosts;
    }
    const char* role = clients ? "clients" : "servers";
    const double available = static_cast<double>(measured_ns) * std::max(1.0, hosts);
    metrics.set(fmt::format("cpu.{}.time", role), used, "ns");
    metrics.set(fmt::format("cpu.{}.utilisation", role), available <= 0 ? 0 : used / available, "ratio");
  }
}

}  // namespace bx::harness
