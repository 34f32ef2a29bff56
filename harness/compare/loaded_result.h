// SPDX-License-Identifier: GPL-2.0-only
// A result.json read back, as far as comparing it needs (docs/results.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/measure/metric_set.h"
#include "harness/scenario/compare_rule.h"

namespace bx::harness {

struct LoadedVariant {
  std::string name{};
  std::string status{};      // "completed", or why its metrics mean little
  std::size_t breaches = 0;  // found by the oracle
  MetricSet metrics{};       // a number that is not there (null) is left out
};

struct LoadedResult {
  std::string path;
  std::string scenario;
  std::string hash;  // of the scenario file
  std::string backend;
  std::uint64_t seed = 0;
  std::vector<CompareRule> rules;
  std::vector<LoadedVariant> variants;
};

inline constexpr std::size_t kResultsMax = 10'000;  // of one directory

// The error names the file, what is wrong with it and what to do.
Parsed<LoadedResult> parse_result(const std::string& text, const std::string& path);
// `path` is a result.json, or a directory with one or several somewhere below (a seed each), by seed.
Parsed<std::vector<LoadedResult>> load_results(const std::string& path);

}  // namespace bx::harness
