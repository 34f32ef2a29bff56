// SPDX-License-Identifier: GPL-2.0-only
#include "harness/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace bx::harness {
namespace {

// What every backend has and what does not hang on a single unlucky packet. A metric that the scenario has no
// use for (flows, transfers) is in neither result.
constexpr std::array<std::string_view, 18> kUsual{"fetch.time",       "call.latency.mean",
                                                  "call.latency.p50", "flow.time.p50",
                                                  "flow.time.max",    "goodput",
                                                  "flow.goodput",     "workload.calls",
                                                  "call.errors",      "messages.sent",
                                                  "messages.eager",   "messages.received",
                                                  "messages.offered", "transfers.completed",
                                                  "transfers.reads",  "transfers.writes_granted",
                                                  "requests.served",  "calls.completed"};

// The rules in force for one variant, with whether the scenario or the command line asked for each.
struct Demand {
  CompareRule rule;
  bool asked = false;
};

const LoadedVariant* find_variant(const LoadedResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.variants, name, &LoadedVariant::name);
  return found == result.variants.end() ? nullptr : &*found;
}
const LoadedResult* find_seed(std::span<const LoadedResult> results, std::uint64_t seed) {
  const auto found = std::ranges::find(results, seed, &LoadedResult::seed);
  return found == results.end() ? nullptr : &*found;
}

class Comparer {
 public:
  Comparer(std::span<const LoadedResult> a, std::span<const LoadedResult> b, const CompareOptions& options)
      : a_(a), b_(b), options_(options) {}

  Parsed<Comparison> compare() {
    if (a_.front().scenario != b_.front().scenario) {
      return tl::unexpected(
          fmt::format("{} is of scenario {}, {} of {}: only results of one scenario can be compared",
                      a_.front().path, a_.front().scenario, b_.front().path, b_.front().scenario));
    }
    out_.scenario = a_.front().scenario;
    out_.backend_a = a_.front().backend;
    out_.backend_b = b_.front().backend;
    if (a_.front().hash != b_.front().hash) {
      out_.notes.push_back("the scenario file was changed between the two");
    }
    match_seeds();
    for (const std::string& variant : match_variants()) compare_variant(variant);
    if (!error_.empty()) return tl::unexpected(error_);
    if (out_.metrics.empty())
      out_.faults.push_back("there is nothing that both have and that could be compared");
    return std::move(out_);
  }

 private:
  void match_seeds() {
    const auto lone = [this](std::span<const LoadedResult> from, std::span<const LoadedResult> in,
                             std::string_view which) {
      for (const LoadedResult& result : from) {
        if (find_seed(in, result.seed) == nullptr) {
          out_.faults.push_back(fmt::format("seed {} is in {} only", result.seed, which));
        } else if (which == "A") {
          seeds_.push_back(result.seed);
        }
      }
    };
    lone(a_, b_, "A");
    lone(b_, a_, "B");
  }

  // Names that all matched runs have, in A's order; the rest are faults.
  std::vector<std::string> match_variants() {
    std::vector<std::string> names;
    const auto take = [&](std::span<const LoadedResult> from, std::span<const LoadedResult> in,
                          std::string_view which) {
      for (const std::uint64_t seed : seeds_) {
        for (const LoadedVariant& variant : find_seed(from, seed)->variants) {
          if (variant.status != "completed" || variant.breaches != 0) {
            out_.faults.push_back(fmt::format("{}, variant {}, seed {}: {}, {} breaches of the oracle", which,
                                              variant.name, seed, variant.status, variant.breaches));
          }
          if (find_variant(*find_seed(in, seed), variant.name) == nullptr) {
            out_.faults.push_back(
                fmt::format("variant {} of seed {} is in {} only", variant.name, seed, which));
          } else if (std::ranges::count(names, variant.name) == 0) {
            names.push_back(variant.name);
          }
        }
      }
    };
    take(a_, b_, "A");
    take(b_, a_, "B");
    return names;
  }

  [[nodiscard]] std::vector<Demand> demands(std::string_view variant) const {
    std::vector<Demand> demands;
    for (CompareRule& rule : default_rules()) demands.push_back({std::move(rule), false});
    for (const CompareRule& rule : a_.front().rules) {
      if (!rule.applies_to(variant)) continue;
      const auto same = std::ranges::find_if(
          demands, [&](const Demand& demand) { return demand.rule.metric == rule.metric; });
      if (same != demands.end()) {
        *same = {rule, true};
      } else {
        demands.push_back({rule, true});
      }
    }
    if (options_.metrics.empty()) return demands;
    std::vector<Demand> wanted;
    for (const std::string& metric : options_.metrics) {
      const auto known =
          std::ranges::find_if(demands, [&](const Demand& demand) { return demand.rule.metric == metric; });
      wanted.push_back({known == demands.end() ? CompareRule{} : known->rule, true});
      wanted.back().rule.metric = metric;
      wanted.back().rule.judged = true;
    }
    return wanted;
  }

  void compare_variant(const std::string& variant) {
    for (const Demand& demand : demands(variant)) {
      if (demand.rule.over == CompareRule::Over::mean) {
        add(demand, variant, std::nullopt, seeds_);
      } else {
        for (const std::uint64_t seed : seeds_) add(demand, variant, seed, {&seed, 1});
      }
    }
  }

  // The mean over `seeds`; nothing unless each of them has the metric.
  static std::optional<Metric> mean_of(std::span<const LoadedResult> results, std::string_view variant,
                                       std::string_view metric, std::span<const std::uint64_t> seeds) {
    std::optional<Metric> mean;
    for (const std::uint64_t seed : seeds) {
      const LoadedVariant* run = find_variant(*find_seed(results, seed), variant);
      const Metric* value = run == nullptr ? nullptr : run->metrics.find(metric);
      if (value == nullptr) return std::nullopt;
      if (!mean) mean = Metric{value->name, 0, value->unit};
      mean->value += value->value / static_cast<double>(seeds.size());
    }
    return mean;
  }

  void add(const Demand& demand, const std::string& variant, std::optional<std::uint64_t> seed,
           std::span<const std::uint64_t> seeds) {
    const CompareRule& rule = demand.rule;
    ComparedMetric row{.variant = variant,
                       .seed = seed,
                       .seeds = seeds.size(),
                       .metric = rule.metric,
                       .a = mean_of(a_, variant, rule.metric, seeds),
                       .b = mean_of(b_, variant, rule.metric, seeds),
                       .within = options_.within.value_or(rule.within),
                       .or_by = options_.within ? 0 : rule.or_by};
    if (!row.a && !row.b && !demand.asked) return;
    check_unit(rule, row.a ? row.a : row.b);
    if (!row.a || !row.b) {
      row.agreement = rule.judged ? Agreement::missing : Agreement::shown;
    } else if (!rule.judged) {
      row.agreement = Agreement::shown;
    } else {
      const double apart = std::abs(row.b->value - row.a->value);
      const double larger = std::max(std::abs(row.a->value), std::abs(row.b->value));
      const bool agree = row.a->unit == row.b->unit && (apart <= row.within * larger || apart <= row.or_by);
      row.agreement = agree ? Agreement::agree : Agreement::differ;
    }
    out_.metrics.push_back(std::move(row));
  }

  void check_unit(const CompareRule& rule, const std::optional<Metric>& metric) {
    if (!metric || rule.or_by == 0) return;
    const bool plain = metric->unit == "count" || metric->unit == "ratio";
    if (rule.or_by_unit == (plain ? "" : metric->unit)) return;
    error_ = fmt::format(
        "{}: 'compare.or_by' of {} is {}, but the metric is measured in {}", a_.front().path, rule.metric,
        rule.or_by_unit.empty() ? "a plain number" : fmt::format("in {}", rule.or_by_unit), metric->unit);
  }

  std::span<const LoadedResult> a_;
  std::span<const LoadedResult> b_;
  const CompareOptions& options_;
  std::vector<std::uint64_t> seeds_;  // that both have
  Comparison out_;
  std::string error_;
};

}  // namespace

std::string_view to_string(Agreement agreement) noexcept {
  switch (agreement) {
    case Agreement::agree:
      return "agree";
    case Agreement::differ:
      return "differ";
    case Agreement::missing:
      return "missing";
    case Agreement::shown:
      return "shown";
  }
  return "unknown";
}

std::optional<double> ComparedMetric::difference() const {
  if (!a || !b || a->value == 0) return std::nullopt;
  return b->value / a->value - 1;
}

bool Comparison::agrees() const {
  return faults.empty() && std::ranges::none_of(metrics, [](const ComparedMetric& row) {
           return row.agreement == Agreement::differ || row.agreement == Agreement::missing;
         });
}

std::vector<CompareRule> default_rules() {
  std::vector<CompareRule> rules;
  for (const std::string_view metric : kUsual) rules.push_back({.metric = std::string(metric)});
  return rules;
}

Parsed<Comparison> compare_results(std::span<const LoadedResult> a, std::span<const LoadedResult> b,
                                   const CompareOptions& options) {
  return Comparer(a, b, options).compare();
}

}  // namespace bx::harness
