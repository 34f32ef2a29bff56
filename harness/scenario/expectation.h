// SPDX-License-Identifier: GPL-2.0-only
// What a scenario says must hold of a result.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/diagnostics.h"
#include "harness/measure/metric_set.h"
#include "harness/scenario/document.h"

namespace bx::harness {

struct Expectation {
  enum class Kind : std::uint8_t { equals, at_most, at_least, within };
  std::string metric;
  Kind kind = Kind::equals;
  double value = 0;  // in the metric's unit; a factor of `of` if that is given; of kind within, the tolerance
  std::string value_unit;             // "ns", "bytes", "bps" as written, or empty for a plain number
  std::string of;                     // another metric to compare with, or empty
  std::string of_variant;             // whose `of` it is; empty: that of the variant judged
  std::vector<std::string> backends;  // empty: all
  std::vector<std::string> variants;  // empty: all
  Place place;

  [[nodiscard]] bool applies_to(std::string_view backend, std::string_view variant) const;
  // "equals 0", "at most 300us", "within 3 % of bound.line_rate", "at most 0.9 times fetch.time of no-window"
  [[nodiscard]] std::string condition() const;
};
std::string_view to_string(Expectation::Kind kind) noexcept;

// Reads one [[expect]] table; mistakes become diagnostics and give nothing.
std::optional<Expectation> read_expectation(const Value& table, const std::vector<std::string>& variant_names,
                                            std::string_view source, Diagnostics& diagnostics);

struct Verdict {
  Expectation expectation;
  bool holds = false;
  std::optional<Metric> measured;
  std::optional<Metric> reference;  // the metric `of`
  std::string reason;               // why not, when a number is missing
};

// Judges `expectation` by what was measured; `of` is looked up in `references`, the metrics of `of_variant`
// if that is named. A metric that is not there does not hold.
Verdict judge(const Expectation& expectation, const MetricSet& metrics, const MetricSet& references);

// What is wrong with the expectation itself, before anything ran, given the metrics that there will be: a
// name that does not exist, a unit that does not fit. Empty if nothing.
std::string find_fault(const Expectation& expectation, const MetricSet& known);

}  // namespace bx::harness
