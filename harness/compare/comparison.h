// SPDX-License-Identifier: GPL-2.0-only
// Two results of one scenario, number by number: what `bx compare` says. Runs are matched by seed and
// variant; which numbers are looked at, and how far apart they may be, is said by the scenario's [[compare]]
// and, of the usual ones it says nothing about, by default_rules().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/compare/loaded_result.h"

namespace bx::harness {

enum class Agreement : std::uint8_t {
  agree,
  differ,
  missing,  // one of the results does not have the metric
  shown,    // not judged
};
std::string_view to_string(Agreement agreement) noexcept;

struct ComparedMetric {
  std::string variant;
  std::optional<std::uint64_t> seed;  // none: the mean over `seeds` of them
  std::size_t seeds = 1;
  std::string metric;
  std::optional<Metric> a;
  std::optional<Metric> b;
  double within = 0;  // as CompareRule has them
  double or_by = 0;
  Agreement agreement = Agreement::agree;

  // b's difference from a, as a share of a. Nothing if one is missing or a is 0.
  [[nodiscard]] std::optional<double> difference() const;
};

struct Comparison {
  std::string scenario;
  std::string backend_a;
  std::string backend_b;
  std::vector<ComparedMetric> metrics;  // by variant, then seed, then in the order of the rules
  std::vector<std::string> faults;      // what else makes them differ: a seed or a variant of one only, a run
                                        // that did not complete
  std::vector<std::string> notes;       // what does not: another scenario file of the same name

  [[nodiscard]] bool agrees() const;
};

struct CompareOptions {
  std::optional<double> within{};      // instead of every other tolerance
  std::vector<std::string> metrics{};  // these only, judged; empty: those of the rules
};

// Completion times, goodput and counts: within 10 %. Those that neither result has are passed over.
std::vector<CompareRule> default_rules();

// Both of one scenario, not empty. Errors: results of different scenarios, a rule whose unit is not the
// metric's.
Parsed<Comparison> compare_results(std::span<const LoadedResult> a, std::span<const LoadedResult> b,
                                   const CompareOptions& options);

// A table for each variant, then what is wrong.
std::string render_comparison(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

}  // namespace bx::harness
