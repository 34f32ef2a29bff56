// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/compare_rule.h"

#include <gtest/gtest.h>

#include "harness/scenario/scenario.h"

namespace bx::harness {
namespace {

struct Read {
  std::vector<CompareRule> rules;
  std::string errors;
};

Read read(const std::string& rule) {
  Diagnostics diagnostics;
  const auto scenario = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 2\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = '1'\nanswer = "
      "'4KiB'\n"
      "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[[compare]]\n" +
          rule,
      "s.toml", {}, diagnostics);
  return {scenario ? scenario->compare : std::vector<CompareRule>{}, diagnostics.text()};
}

TEST(compare_rule, read_compare_rule__everything) {
  const Read all =
      read("metric = 'fetch.time'\nwithin = '5%'\nor_by = '50us'\nover = 'mean'\nvariant = ['b']\n");
  ASSERT_EQ(all.rules.size(), 1U) << all.errors;
  const CompareRule& rule = all.rules[0];
  EXPECT_EQ(rule.metric, "fetch.time");
  EXPECT_DOUBLE_EQ(rule.within, 0.05);
  EXPECT_EQ(rule.or_by, 50'000);
  EXPECT_EQ(rule.or_by_unit, "ns");
  EXPECT_EQ(rule.over, CompareRule::Over::mean);
  EXPECT_TRUE(rule.judged);
  EXPECT_TRUE(rule.applies_to("b"));
  EXPECT_FALSE(rule.applies_to("a"));
}

TEST(compare_rule, read_compare_rule__ten_per_cent_is_the_default) {
  const Read plain = read("metric = 'messages.sent'\nor_by = 3\n");
  ASSERT_EQ(plain.rules.size(), 1U) << plain.errors;
  EXPECT_DOUBLE_EQ(plain.rules[0].within, 0.1);
  EXPECT_EQ(plain.rules[0].or_by, 3);
  EXPECT_TRUE(plain.rules[0].applies_to("a"));
}

TEST(compare_rule, read_compare_rule__mistakes_are_named_with_their_place) {
  EXPECT_EQ(read("within = '5%'\n").errors, "s.toml:13:1: error: a [[compare]] needs a 'metric'\n");
  EXPECT_EQ(read("metric = 'x'\nwithin = '5us'\n").errors,
            "s.toml:15:10: error: 'compare.within' = '5us' is not a tolerance; write for example '10%'\n");
  EXPECT_EQ(read("metric = 'x'\nwithin = -1\n").errors,
            "s.toml:15:10: error: 'compare.within' = -1 is not a tolerance; write for example '10%'\n");
  EXPECT_EQ(read("metric = 'x'\nor_by = '5%'\n").errors,
            "s.toml:15:9: error: 'compare.or_by' = '5%' is not a quantity; write for example 3, '50us' or "
            "'4KiB'\n");
  EXPECT_EQ(read("metric = 'x'\nwithing = '5%'\n").errors,
            "s.toml:15:1: error: unknown key 'compare.withing' = '5%'; did you mean 'within'?\n");
  EXPECT_EQ(read("metric = 'x'\nover = 'all'\n").errors,
            "s.toml:15:8: error: 'compare.over' = 'all' does not exist; allowed: each, mean\n");
  EXPECT_EQ(read("metric = 'x'\nvariant = 'else'\n").errors,
            "s.toml:15:11: error: 'compare.variant' = 'else' does not exist; allowed: a, b\n");
  EXPECT_EQ(read("metric = 3\n").errors,
            "s.toml:14:10: error: 'compare.metric' = 3 has the wrong type; allowed: the name of a metric\n");
}

}  // namespace
}  // namespace bx::harness
