// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/compare/comparison.h"

namespace bx::harness {

int compare_command(const CompareCommandOptions& options) {
  const auto refuse = [](std::string_view message) {
    fmt::print(stderr, "bx: error: {}\n", message);
    return kExitUsage;
  };
  CompareOptions compare{.within = std::nullopt, .metrics = options.metrics};
  if (!options.within.empty()) {
    const Parsed<double> within = parse_ratio(options.within);
    if (!within || *within < 0) {
      return refuse(fmt::format("--within {} is not a tolerance; write for example 10%", options.within));
    }
    compare.within = *within;
  }
  const Parsed<std::vector<LoadedResult>> a = load_results(options.a);
  if (!a) return refuse(a.error());
  const Parsed<std::vector<LoadedResult>> b = load_results(options.b);
  if (!b) return refuse(b.error());
  const Parsed<Comparison> comparison = compare_results(*a, *b, compare);
  if (!comparison) return refuse(comparison.error());
  fmt::print("{}", options.json ? comparison_json(*comparison) : render_comparison(*comparison));
  return comparison->agrees() ? kExitGood : kExitNotGood;
}

}  // namespace bx::harness
