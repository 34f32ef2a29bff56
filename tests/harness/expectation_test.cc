// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/expectation.h"

#include <gtest/gtest.h>

namespace bx::harness {
namespace {

struct Read {
  std::optional<Expectation> expectation;
  std::string errors;
};

Read read(const std::string& toml) {
  Diagnostics diagnostics;
  const Value table = parse_toml(toml, "f", diagnostics);
  Read result{read_expectation(table, {"window", "no-window"}, "f", diagnostics), {}};
  result.errors = diagnostics.text();
  return result;
}

MetricSet metrics() {
  MetricSet set;
  set.metric("pfc.pause_frames", 0, "count");
  set.metric("fetch.time", 1'030, "ns");
  set.metric("bound.line_rate", 1'000, "ns");
  set.metric("goodput", 9e10, "bps");
  set.metric("nothing.measured", 0, "ns");
  return set;
}

bool holds(const std::string& toml) {
  const Read result = read(toml);
  EXPECT_TRUE(result.expectation) << result.errors;
  EXPECT_EQ(find_fault(*result.expectation, metrics()), "");
  return judge(*result.expectation, metrics(), metrics()).holds;
}

TEST(expectation, read_expectation__conditions_in_words) {
  EXPECT_EQ(read("metric = 'a'\nequals = 0").expectation->condition(), "equals 0");
  EXPECT_EQ(read("metric = 'a'\nat_most = '300us'").expectation->condition(), "at most 300us");
  EXPECT_EQ(read("metric = 'a'\nat_least = '90Gbps'").expectation->condition(), "at least 90Gbps");
  EXPECT_EQ(read("metric = 'a'\nwithin = '3%'\nof = 'b'").expectation->condition(), "within 3 % of b");
  EXPECT_EQ(read("metric = 'a'\nat_most = 1.5\nof = 'b'").expectation->condition(), "at most 1.5 times b");
}

TEST(expectation, read_expectation__mistakes) {
  EXPECT_EQ(read("equals = 0").errors, "f: error: an [[expect]] needs a 'metric'\n");
  EXPECT_EQ(read("metric = 'a'").errors,
            "f: error: an [[expect]] needs exactly one of equals, at_most, at_least and within; this one "
            "has 0\n");
  EXPECT_EQ(read("metric = 'a'\nequals = 1\nat_most = 2").errors,
            "f: error: an [[expect]] needs exactly one of equals, at_most, at_least and within; this one "
            "has 2\n");
  EXPECT_EQ(
      read("metric = 'a'\nwithin = '3%'").errors,
      "f: error: 'within' needs 'of', the metric to compare with, for example of = 'bound.line_rate'\n");
  EXPECT_EQ(read("metric = 'a'\nwithin = '3us'\nof = 'b'").errors,
            "f:2:10: error: 'expect.within' = '3us' is not a tolerance; write for example '3%'\n");
  EXPECT_EQ(read("metric = 'a'\nat_most = '3us'\nof = 'b'").errors,
            "f: error: with 'of' the condition is a factor and has no unit, for example at_most = 1.5\n");
  EXPECT_EQ(read("metric = 'a'\nat_mots = 3").errors,
            "f:2:1: error: unknown key 'expect.at_mots' = 3; did you mean 'at_most'?\n");
  EXPECT_EQ(read("metric = 3\nequals = 0").errors,
            "f:1:10: error: 'expect.metric' = 3 has the wrong type; allowed: the name of a metric\n");
  EXPECT_EQ(
      read("metric = 'a'\nequals = 'few'").errors,
      "f:2:10: error: 'expect.equals' = 'few' is not a quantity; write for example 0, '300us', '64KiB', "
      "'90Gbps' or '3%'\n");
  EXPECT_EQ(
      read("metric = 'a'\nequals = 0\nvariant = 'windwo'").errors,
      "f:3:11: error: 'expect.variant' = 'windwo' does not exist; allowed: window, no-window; did you mean "
      "'window'?\n");
  EXPECT_EQ(read("metric = 'a'\nequals = 0\nbackends = ['sim', 'ns3']").errors,
            "f:3:20: error: 'expect.backends' = 'ns3' does not exist; allowed: sim, loopback, rxe, verbs\n");
}

TEST(expectation, applies_to__backends_and_variants) {
  const Expectation bound =
      *read("metric = 'a'\nequals = 0\nvariant = 'window'\nbackends = ['sim', 'rxe']").expectation;
  EXPECT_TRUE(bound.applies_to("sim", "window"));
  EXPECT_FALSE(bound.applies_to("loopback", "window"));
  EXPECT_FALSE(bound.applies_to("sim", "no-window"));
  EXPECT_TRUE(read("metric = 'a'\nequals = 0").expectation->applies_to("loopback", "anything"));
}

TEST(expectation, judge__each_condition_at_its_edge) {
  EXPECT_TRUE(holds("metric = 'pfc.pause_frames'\nequals = 0"));
  EXPECT_FALSE(holds("metric = 'pfc.pause_frames'\nat_least = 1"));
  EXPECT_TRUE(holds("metric = 'fetch.time'\nat_most = '1030ns'"));
  EXPECT_FALSE(holds("metric = 'fetch.time'\nat_most = '1029ns'"));
  EXPECT_TRUE(holds("metric = 'fetch.time'\nwithin = '3%'\nof = 'bound.line_rate'"));
  EXPECT_FALSE(holds("metric = 'fetch.time'\nwithin = '2.9%'\nof = 'bound.line_rate'"));
  EXPECT_TRUE(holds("metric = 'fetch.time'\nat_most = 1.03\nof = 'bound.line_rate'"));
  EXPECT_FALSE(holds("metric = 'fetch.time'\nat_least = 1.04\nof = 'bound.line_rate'"));
  EXPECT_TRUE(holds("metric = 'goodput'\nat_least = '90Gbps'"));
  EXPECT_TRUE(holds("metric = 'nothing.measured'\nequals = 0"));
}

TEST(expectation, judge__a_metric_that_is_missing_does_not_hold) {
  const Verdict verdict = judge(*read("metric = 'pfc.pause_frame'\nequals = 0").expectation, metrics(), {});
  EXPECT_FALSE(verdict.holds);
  EXPECT_EQ(verdict.reason, "there is no metric 'pfc.pause_frame'; did you mean 'pfc.pause_frames'?");
}

TEST(expectation, of_variant__compares_with_what_another_run_measured) {
  const Expectation faster =
      *read("metric = 'fetch.time'\nat_most = 0.9\nof_variant = 'no-window'\nvariant = 'window'").expectation;
  EXPECT_EQ(faster.of, "fetch.time");
  EXPECT_EQ(faster.condition(), "at most 0.9 times fetch.time of variant no-window");
  MetricSet other;
  other.metric("fetch.time", 1'145, "ns");
  const Verdict verdict = judge(faster, metrics(), other);
  EXPECT_TRUE(verdict.holds);  // 1030 <= 0.9 * 1145
  EXPECT_EQ(verdict.reference->value, 1'145);
  EXPECT_FALSE(judge(faster, metrics(), metrics()).holds);
  EXPECT_EQ(judge(faster, metrics(), {}).reason, "there is no metric 'fetch.time' of variant 'no-window'");
}

TEST(expectation, of_variant__mistakes) {
  EXPECT_EQ(
      read("metric = 'a'\nequals = 1\nof_variant = 'windwo'").errors,
      "f:3:14: error: 'expect.of_variant' = 'windwo' does not exist; allowed: window, no-window; did you "
      "mean 'window'?\n");
  EXPECT_EQ(read("metric = 'a'\nequals = 1\nof_variant = ['window']").errors,
            "f:3:14: error: 'expect.of_variant' = a list has the wrong type; allowed: one variant\n");
  EXPECT_EQ(read("metric = 'a'\nequals = 1\nof_variant = 'window'\nvariant = 'window'").errors,
            "f: error: this compares 'a' of variant 'window' with itself\n");
  EXPECT_EQ(read("metric = 'a'\nat_most = '3us'\nof_variant = 'window'").errors,
            "f: error: with 'of' the condition is a factor and has no unit, for example at_most = 1.5\n");
}

TEST(expectation, find_fault__units_and_names_before_the_run) {
  const auto fault = [](const std::string& toml) { return find_fault(*read(toml).expectation, metrics()); };
  EXPECT_EQ(fault("metric = 'fetch.tmie'\nequals = 0"),
            "there is no metric 'fetch.tmie'; did you mean 'fetch.time'?");
  EXPECT_EQ(fault("metric = 'fetch.time'\nat_most = 5"),
            "'fetch.time' is measured in ns, which 'at most 5' is not");
  EXPECT_EQ(fault("metric = 'fetch.time'\nat_most = '5KiB'"),
            "'fetch.time' is measured in ns, which 'at most 5KiB' is not");
  EXPECT_EQ(fault("metric = 'fetch.time'\nwithin = '1%'\nof = 'goodput'"),
            "'fetch.time' is in ns and 'goodput' in bps: they cannot be compared");
  EXPECT_EQ(fault("metric = 'fetch.time'\nwithin = '1%'\nof = 'bound'"), "there is no metric 'bound'");
}

}  // namespace
}  // namespace bx::harness
