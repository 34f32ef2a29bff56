// SPDX-License-Identifier: GPL-2.0-only
// The expectations of a scenario for one variant on one backend: which of them apply, whether they speak of
// metrics that there will be, what they excuse, and in the end whether they hold.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/metric_set.h"
#include "harness/run/backend.h"
#include "harness/run/variant_result.h"
#include "harness/scenario/scenario.h"
#include "harness/workload/ledger.h"

namespace bx::harness {

inline constexpr std::string_view kHungMetric = "run.hung";  // 1: the run was given up

// What can be measured in a run.
struct Visible {
  MetricSet counters;
  bool closed_form = false;
  bool cpu = false;  // of each host by itself
};

class Expectations {
 public:
  // Both outlive it.
  Expectations(const Scenario& scenario, const Variant& variant, BackendKind backend)
      : scenario_(scenario), variant_(variant), backend_(backend) {}

  // Before anything runs: a misspelt metric must not cost a long run, nor pass unseen. What is wrong, or
  // nothing.
  [[nodiscard]] std::string check(Visible visible);
  // What an expectation speaks about is for that to judge: it is no breach.
  void tolerate(Ledger& ledger);
  [[nodiscard]] bool hang_tolerated() const noexcept { return hang_tolerated_; }
  // Every metric of result.metrics must be one that check() knew of.
  void judge(VariantResult& result) const;

 private:
  [[nodiscard]] bool applies(const Expectation& expectation) const;

  const Scenario& scenario_;
  const Variant& variant_;
  BackendKind backend_;
  MetricSet known_;
  bool cpu_ = false;
  bool hang_tolerated_ = false;
};

// Adds to each result the verdicts that compare it with another variant's: expectations with `of_variant`, of
// which a single run cannot judge. `results` are those of one scenario with one seed.
void judge_across(const Scenario& scenario, BackendKind backend, std::vector<VariantResult>& results);

}  // namespace bx::harness
