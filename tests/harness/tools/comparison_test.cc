// SPDX-License-Identifier: GPL-2.0-only
#include "harness/compare/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bx::harness {
namespace {

LoadedResult result_of(std::uint64_t seed, double fetch_time, const std::string& backend = "sim") {
  LoadedVariant variant{.name = "window", .status = "completed"};
  variant.metrics.set("fetch.time", fetch_time, "ns");
  variant.metrics.set("goodput", 1e8, "bps");
  variant.metrics.set("nic.retransmissions", 4, "count");
  LoadedResult result;
  result.path = backend + "/result.json";
  result.scenario = "incast";
  result.hash = "bxdigest64:1";
  result.backend = backend;
  result.seed = seed;
  result.variants.push_back(std::move(variant));
  return result;
}

Comparison compare_two(const LoadedResult& a, const LoadedResult& b, const CompareOptions& options = {}) {
  const Parsed<Comparison> comparison = compare_results({&a, 1}, {&b, 1}, options);
  EXPECT_TRUE(comparison) << comparison.error();
  return comparison.value_or(Comparison{});
}

const ComparedMetric* find(const Comparison& comparison, std::string_view metric) {
  const auto found = std::ranges::find(comparison.metrics, metric, &ComparedMetric::metric);
  return found == comparison.metrics.end() ? nullptr : &*found;
}

TEST(comparison, compare_results__ten_per_cent_unless_the_scenario_says_otherwise) {
  EXPECT_TRUE(compare_two(result_of(1, 1000), result_of(1, 1090)).agrees());
  const Comparison far = compare_two(result_of(1, 1000), result_of(1, 1200));
  EXPECT_FALSE(far.agrees());
  EXPECT_EQ(find(far, "fetch.time")->agreement, Agreement::differ);
  EXPECT_EQ(find(far, "goodput")->agreement, Agreement::agree);
  EXPECT_NEAR(*find(far, "fetch.time")->difference(), 0.2, 1e-9);
}

TEST(comparison, compare_results__is_the_same_the_other_way_round) {
  for (const double other : {901.0, 899.0, 1110.0, 1112.0}) {
    EXPECT_EQ(compare_two(result_of(1, 1000), result_of(1, other)).agrees(),
              compare_two(result_of(1, other), result_of(1, 1000)).agrees())
        << other;
  }
}

TEST(comparison, compare_results__a_rule_of_the_scenario_takes_the_place_of_the_usual_one) {
  LoadedResult a = result_of(1, 1000);
  a.rules = {{.metric = "fetch.time", .within = 0.5}};
  EXPECT_TRUE(compare_two(a, result_of(1, 1400)).agrees());
  a.rules = {{.metric = "fetch.time", .within = 0, .or_by = 100, .or_by_unit = "ns"}};
  EXPECT_TRUE(compare_two(a, result_of(1, 1100)).agrees());
  EXPECT_FALSE(compare_two(a, result_of(1, 1101)).agrees());
  a.rules = {{.metric = "fetch.time", .judged = false}};
  const Comparison shown = compare_two(a, result_of(1, 9000));
  EXPECT_TRUE(shown.agrees());
  EXPECT_EQ(find(shown, "fetch.time")->agreement, Agreement::shown);
  a.rules = {{.metric = "fetch.time", .within = 0, .variants = {"another"}}};
  EXPECT_TRUE(compare_two(a, result_of(1, 1050)).agrees()) << "of another variant";
}

TEST(comparison, compare_results__a_tolerance_in_another_unit_is_refused) {
  LoadedResult a = result_of(1, 1000);
  a.rules = {{.metric = "fetch.time", .or_by = 3}};
  const LoadedResult b = result_of(1, 1000);
  const Parsed<Comparison> comparison = compare_results({&a, 1}, {&b, 1}, {});
  ASSERT_FALSE(comparison);
  EXPECT_EQ(
      comparison.error(),
      "sim/result.json: 'compare.or_by' of fetch.time is a plain number, but the metric is measured in ns");
}

TEST(comparison, compare_results__names_what_one_of_them_does_not_have) {
  LoadedResult a = result_of(1, 1000);
  LoadedResult b = result_of(1, 1000, "rxe");
  b.variants[0].metrics = {};
  b.variants[0].metrics.set("goodput", 1e8, "bps");
  const Comparison comparison = compare_two(a, b);
  EXPECT_FALSE(comparison.agrees());
  EXPECT_EQ(find(comparison, "fetch.time")->agreement, Agreement::missing);
  EXPECT_NE(render_comparison(comparison).find("missing in B: fetch.time of variant window"),
            std::string::npos);
  EXPECT_EQ(find(comparison, "flow.goodput"), nullptr) << "neither has flows, and nobody asked";
  a.rules = {{.metric = "flow.goodput"}};
  EXPECT_EQ(find(compare_two(a, b), "flow.goodput")->agreement, Agreement::missing) << "the scenario asked";
}

TEST(comparison, compare_results__matches_seeds_and_variants_by_name) {
  const std::vector<LoadedResult> a{result_of(1, 1000), result_of(2, 2000)};
  std::vector<LoadedResult> b{result_of(2, 2000), result_of(1, 1000)};
  const Parsed<Comparison> same = compare_results(a, b, {});
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->agrees());
  EXPECT_EQ(same->metrics.size(), 4U);

  b.pop_back();
  const Parsed<Comparison> fewer = compare_results(a, b, {});
  EXPECT_EQ(fewer->faults, std::vector<std::string>{"seed 1 is in A only"});
  EXPECT_FALSE(fewer->agrees());

  b = {result_of(1, 1000), result_of(2, 2000)};
  b[0].variants.push_back({.name = "no-window", .status = "completed"});
  EXPECT_EQ(compare_results(a, b, {})->faults,
            std::vector<std::string>{"variant no-window of seed 1 is in B only"});
}

TEST(comparison, compare_results__the_mean_over_seeds_evens_chance_out) {
  std::vector<LoadedResult> a{result_of(1, 1000), result_of(2, 2000)};
  const std::vector<LoadedResult> b{result_of(1, 2000), result_of(2, 1000)};
  EXPECT_FALSE(compare_results(a, b, {})->agrees());
  for (LoadedResult& result : a) {
    result.rules = {{.metric = "fetch.time", .over = CompareRule::Over::mean}};
  }
  const Parsed<Comparison> mean = compare_results(a, b, {});
  EXPECT_TRUE(mean->agrees());
  EXPECT_FALSE(find(*mean, "fetch.time")->seed);
  EXPECT_EQ(find(*mean, "fetch.time")->seeds, 2U);
  EXPECT_EQ(find(*mean, "fetch.time")->a->value, 1500);
}

TEST(comparison, compare_results__a_run_that_did_not_complete_agrees_with_nothing) {
  LoadedResult b = result_of(1, 1000);
  b.variants[0].status = "crashed";
  b.variants[0].breaches = 1;
  EXPECT_EQ(compare_two(result_of(1, 1000), b).faults,
            std::vector<std::string>{"B, variant window, seed 1: crashed, 1 breaches of the oracle"});
}

TEST(comparison, compare_results__only_of_one_scenario) {
  const LoadedResult a = result_of(1, 1000);
  LoadedResult b = result_of(1, 1000);
  b.hash = "bxdigest64:2";
  EXPECT_EQ(compare_two(a, b).notes.size(), 1U);
  b.scenario = "another";
  EXPECT_FALSE(compare_results({&a, 1}, {&b, 1}, {}));
}

TEST(comparison, compare_results__options_choose_metrics_and_tolerance) {
  const CompareOptions options{.within = 0.3, .metrics = {"nic.retransmissions", "fetch.time"}};
  LoadedResult b = result_of(1, 1250);
  b.variants[0].metrics.set("nic.retransmissions", 5, "count");
  b.variants[0].metrics.set("goodput", 1, "bps");
  const Comparison comparison = compare_two(result_of(1, 1000), b, options);
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.metrics.size(), 2U);
  EXPECT_FALSE(compare_two(result_of(1, 1000), b, {.within = 0.1, .metrics = {"fetch.time"}}).agrees());
}

TEST(comparison, compare_results__zero_is_equal_to_zero_only) {
  const LoadedResult a = result_of(1, 0);
  EXPECT_TRUE(compare_two(a, result_of(1, 0)).agrees());
  const Comparison comparison = compare_two(a, result_of(1, 1));
  EXPECT_FALSE(comparison.agrees());
  EXPECT_FALSE(find(comparison, "fetch.time")->difference());
}

}  // namespace
}  // namespace bx::harness
