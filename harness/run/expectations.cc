// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/expectations.h"

#include <fmt/format.h>

#include <algorithm>
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
      // Another variant's run is not known here: judge_across() comes after all of them.
      if (!expectation.of_variant.empty()) continue;
      result.verdicts.push_back(harness::judge(expectation, result.metrics, result.metrics));
    } else {
      result.skipped.push_back(
          {expectation.metric, fmt::format("backend {} cannot see it", to_string(backend_))});
    }
  }
}

void judge_across(const Scenario& scenario, BackendKind backend, std::vector<VariantResult>& results) {
  static const MetricSet nothing;
  for (const Expectation& expectation : scenario.expectations) {
    if (expectation.of_variant.empty()) continue;
    const auto other = std::ranges::find(results, expectation.of_variant, &VariantResult::name);
    for (VariantResult& result : results) {
      if (!expectation.applies_to(to_string(backend), result.name) ||
          !is_visible(backend, expectation.metric) || !is_visible(backend, expectation.of)) {
        continue;
      }
      // Of a run that was interrupted nothing is judged, and nothing is compared with itself.
      if (result.status != RunStatus::completed) continue;
      if (result.name == expectation.of_variant && expectation.of == expectation.metric) continue;
      if (other != results.end() && other->status == RunStatus::interrupted) continue;
      result.verdicts.push_back(
          judge(expectation, result.metrics, other == results.end() ? nothing : other->metrics));
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
