// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/expectations.h"

#include <fmt/format.h>

#include <utility>

#include "harness/workload/flows.h"
#include "harness/workload/outcome.h"
#include "libbx/base/check.h"

namespace bx::harness {

std::string Expectations::check(Visible visible) {
  known_ = std::move(visible.counters);
  cpu_ = visible.cpu;
  if (make_plan(variant_.settings).calls != 0) declare_outcome(visible.closed_form, known_);
  if (!plan_flows(variant_.settings).empty()) declare_flows(visible.closed_form, known_);
  known_.set(kHungMetric, 0, "count");
  for (const char* role : {"clients", "servers"}) {
    if (!visible.cpu) break;
    known_.set(fmt::format("cpu.{}.time", role), 0, "ns");
    known_.set(fmt::format("cpu.{}.utilisation", role), 0, "ratio");
  }
  for (const Expectation& expectation : scenario_.expectations) {
    if (!applies(expectation)) continue;
    const std::string fault = find_fault(expectation, known_);
    if (fault.empty()) continue;
    return fmt::format("{}:{}:{}: error: {}", scenario_.file, expectation.place.line,
                       expectation.place.column, fault);
  }
  return {};
}

void Expectations::tolerate(Ledger& ledger) {
  for (const Expectation& expectation : scenario_.expectations) {
    if (!applies(expectation)) continue;
    if (expectation.metric == kHungMetric) hang_tolerated_ = true;
    for (const ErrorCode code : all_error_codes()) {
      if (expectation.metric == kErrorMetric || expectation.metric == error_metric(code)) {
        ledger.tolerate(code);
      }
    }
  }
}

void Expectations::judge(VariantResult& result) const {
  for (const Metric& metric : result.metrics.all()) {
    BX_CHECK(known_.find(metric.name) != nullptr, "a metric was reported that was not declared");
  }
  for (const Expectation& expectation : scenario_.expectations) {
    if (!expectation.applies_to(to_string(backend_), variant_.name)) continue;
    if (applies(expectation)) {
      result.verdicts.push_back(harness::judge(expectation, result.metrics));
    } else {
      result.skipped.push_back(
          {expectation.metric, fmt::format("backend {} cannot see it", to_string(backend_))});
    }
  }
}

bool Expectations::applies(const Expectation& expectation) const {
  const auto is_seen = [&](std::string_view metric) {
    return is_visible(backend_, metric) && (cpu_ || !metric.starts_with("cpu."));
  };
  return expectation.applies_to(to_string(backend_), variant_.name) && is_seen(expectation.metric) &&
         is_seen(expectation.of);
}

}  // namespace bx::harness
