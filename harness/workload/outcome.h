// SPDX-License-Identifier: GPL-2.0-only
// From what became of each call to numbers: latencies, fetch times, goodput, and how they stand to the closed
// form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/oracle.h"
#include "harness/workload/ledger.h"
#include "harness/workload/plan.h"
#include "libbx/base/metrics.h"

namespace bx::harness {

// Calls that failed, warm-up included: all, and of one code.
inline constexpr std::string_view kErrorMetric = "call.errors";
std::string error_metric(ErrorCode code);
std::vector<ErrorCode> all_error_codes();

// call.latency.*, fetch.time and fetch.time.* (a fetch is a round: from the start of its first call to its
// last answer; an rpc call is a round of its own), goodput, workload.*. Of the measured calls that were
// answered; what nothing was measured of is left out. With `paths`, bound.line_rate (the mean of the closed
// form over the measured rounds) and bound.ratio (mean fetch time to it).
void report_outcome(const Plan& plan, const Ledger& ledger, const PathModel* paths, MetricSink& sink);

// Where clients and servers have clocks that were compared: call.request.*, from the start of a call to its
// request at the server. Of the measured calls that were answered and whose server has told.
void report_requests(const Plan& plan, const Ledger& ledger, MetricSink& sink);
void declare_requests(MetricSink& sink);

// Every metric that report_outcome may report, with its unit and the value 0.
void declare_outcome(bool closed_form, MetricSink& sink);

// A breach for each measured round and each single answer that arrived before it can have.
void check_closed_form(const Plan& plan, const Ledger& ledger, const PathModel& paths, Oracle& oracle);

// From the first start to the last completion of the measured calls, in nanoseconds; 0 if none completed.
std::uint64_t measured_duration_ns(const Plan& plan, const Ledger& ledger);

}  // namespace bx::harness
