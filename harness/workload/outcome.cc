// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "harness/measure/latency.h"

namespace bx::harness {
namespace {

std::uint64_t elapsed_ns(Instant start, Instant end) {
  return static_cast<std::uint64_t>((end - start).count());
}

// One measured round as it went.
struct RoundTimes {
  const ClientPlan* client = nullptr;
  std::uint64_t number = 0;    // warm-up rounds included
  std::uint64_t measured = 0;  // counted from the first measured one
  Instant start = kNever;
  Instant end{};
  bool complete = true;  // every call was answered
};

// Calls visit(round) for each measured round, and visit_call(call number, plan, record) for each call in it.
template <class VisitCall, class VisitRound>
void visit_measured(const Plan& plan, const Ledger& ledger, VisitCall visit_call, VisitRound visit_round) {
  for (const ClientPlan& client : plan.clients) {
    for (std::uint64_t measured = 0; measured < client.rounds; ++measured) {
      RoundTimes times{&client, client.warm_up_rounds + measured, measured};
      for (std::uint32_t k = 0; k < client.fan_out; ++k) {
        const std::uint64_t call = client.first_call + times.number * client.fan_out + k;
        const CallRecord& record = ledger.record(call);
        if (record.state != CallState::answered) {
          times.complete = false;
          continue;
        }
        times.start = std::min(times.start, record.start);
        times.end = std::max(times.end, record.end);
        visit_call(call, client.round(times.number)[k], record);
      }
      visit_round(times);
    }
  }
}

constexpr auto kIgnoreCall = [](std::uint64_t, const CallPlan&, const CallRecord&) {};

struct Name {
  std::string_view name;
  std::string_view unit;
};
constexpr std::array kDistribution{"mean", "min", "p50", "p90", "p99", "max"};

}  // namespace

std::vector<ErrorCode> all_error_codes() {
  std::vector<ErrorCode> codes;
  for (std::size_t i = 0; i < kErrorCodes; ++i) codes.push_back(static_cast<ErrorCode>(i));
  return codes;
}

std::string error_metric(ErrorCode code) {
  std::string name(to_string(code));
  std::ranges::replace(name, ' ', '_');
  return fmt::format("{}.{}", kErrorMetric, name);
}

std::uint64_t measured_duration_ns(const Plan& plan, const Ledger& ledger) {
  Instant start = kNever;
  Instant end{};
  visit_measured(plan, ledger, kIgnoreCall, [&](const RoundTimes& times) {
    start = std::min(start, times.start);
    end = std::max(end, times.end);
  });
  return start == kNever ? 0 : elapsed_ns(start, end);
}

void report_outcome(const Plan& plan, const Ledger& ledger, const PathModel* paths, MetricSink& sink) {
  Samples latency;
  Samples fetch;
  std::uint64_t bytes = 0;
  visit_measured(
      plan, ledger,
      [&](std::uint64_t, const CallPlan& call, const CallRecord& record) {
        latency.add(elapsed_ns(record.start, record.end));
        bytes += call.answer_bytes;
      },
      [&](const RoundTimes& times) {
        if (times.complete) fetch.add(elapsed_ns(times.start, times.end));
      });
  latency.report("call.latency", sink);
  if (!fetch.empty()) sink.metric("fetch.time", fetch.mean(), "ns");
  fetch.report("fetch.time", sink);
  if (paths != nullptr) {
    Samples bounds;
    for (const ClientPlan& client : plan.clients) {
      for (const std::uint64_t bound : round_bounds_ps(client, *paths)) bounds.add(bound);
    }
    const double line_rate_ns = bounds.mean() / 1000;
    sink.metric("bound.line_rate", line_rate_ns, "ns");
    if (!fetch.empty()) sink.metric("bound.ratio", fetch.mean() / line_rate_ns, "ratio");
  }
  const std::uint64_t duration = measured_duration_ns(plan, ledger);
  if (duration != 0) {
    sink.metric("goodput", static_cast<double>(bytes) * 8e9 / static_cast<double>(duration), "bps");
  }
  std::uint64_t errors = 0;
  for (const ErrorCode code : all_error_codes()) {
    sink.metric(error_metric(code), static_cast<double>(ledger.errors(code)), "count");
    errors += ledger.errors(code);
  }
  sink.metric(kErrorMetric, static_cast<double>(errors), "count");
  sink.metric("workload.calls", static_cast<double>(latency.size()), "count");
  sink.metric("workload.answer_bytes", static_cast<double>(bytes), "bytes");
  sink.metric("workload.duration", static_cast<double>(duration), "ns");
}

void declare_outcome(bool closed_form, MetricSink& sink) {
  for (const char* suffix : kDistribution) sink.metric(fmt::format("call.latency.{}", suffix), 0, "ns");
  sink.metric("fetch.time", 0, "ns");
  for (const char* suffix : kDistribution) sink.metric(fmt::format("fetch.time.{}", suffix), 0, "ns");
  if (closed_form) {
    sink.metric("bound.line_rate", 0, "ns");
    sink.metric("bound.ratio", 0, "ratio");
  }
  for (const ErrorCode code : all_error_codes()) sink.metric(error_metric(code), 0, "count");
  sink.metric(kErrorMetric, 0, "count");
  constexpr std::array kOthers{Name{"goodput", "bps"}, Name{"workload.calls", "count"},
                               Name{"workload.answer_bytes", "bytes"}, Name{"workload.duration", "ns"}};
  for (const Name& other : kOthers) sink.metric(other.name, 0, other.unit);
}

void report_requests(const Plan& plan, const Ledger& ledger, MetricSink& sink) {
  Samples requests;
  visit_measured(
      plan, ledger,
      [&](std::uint64_t, const CallPlan&, const CallRecord& record) {
        // Clocks may disagree by more than a request takes.
        if (record.served)
          requests.add(record.served_at < record.start ? 0 : elapsed_ns(record.start, record.served_at));
      },
      [](const RoundTimes&) {});
  requests.report("call.request", sink);
}

void declare_requests(MetricSink& sink) {
  for (const char* suffix : kDistribution) sink.metric(fmt::format("call.request.{}", suffix), 0, "ns");
}

void check_closed_form(const Plan& plan, const Ledger& ledger, const PathModel& paths, Oracle& oracle) {
  // Instants are rounded down to nanoseconds, so a duration may seem up to one too short.
  const auto too_fast = [](std::uint64_t ns, std::uint64_t bound_ps) { return (ns + 1) * 1000 < bound_ps; };
  std::vector<std::uint64_t> bounds;
  const ClientPlan* bounds_of = nullptr;
  visit_measured(
      plan, ledger,
      [&](std::uint64_t call, const CallPlan& planned, const CallRecord& record) {
        const std::uint64_t bound =
            flow_bound_ps(paths.to(record.client, {&planned.server, 1}), planned.answer_bytes);
        const std::uint64_t taken = elapsed_ns(record.start, record.end);
        if (!too_fast(taken, bound)) return;
        oracle.breach(
            promise::kClosedForm,
            fmt::format("call {} from host{} to host{} took {} ns for {} bytes; the least possible is {} ps",
                        call, record.client, record.server, taken, planned.answer_bytes, bound));
      },
      [&](const RoundTimes& times) {
        if (!times.complete) return;
        if (bounds_of != times.client) bounds = round_bounds_ps(*times.client, paths);
        bounds_of = times.client;
        const std::uint64_t taken = elapsed_ns(times.start, times.end);
        if (!too_fast(taken, bounds[times.measured])) return;
        oracle.breach(
            promise::kClosedForm,
            fmt::format("round {} of host{} took {} ns; its {} answers cannot arrive in less than {} ps",
                        times.number, times.client->host, taken, times.client->fan_out,
                        bounds[times.measured]));
      });
}

}  // namespace bx::harness
