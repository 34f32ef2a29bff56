// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/idle_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/scenario/overrides.h"

namespace bx::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> warnings_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  Diagnostics diagnostics;
  std::vector<std::string> ignored;
  const auto overrides = read_overrides({{}, false, sets, std::nullopt}, diagnostics, ignored);
  const auto scenario = parse_scenario(
      "name = 'x'\n" + text + "\n[[workload]]\nkind = 'incast'\nclients = 0\nservers = 1\nanswer = '1KiB'\n",
      "s.toml", overrides, diagnostics);
  EXPECT_TRUE(scenario) << diagnostics.text();
  return scenario ? scenario->warnings : std::vector<std::string>{};
}

// Gives `settings` a value of the condition's key for which it holds, or does not.
void bring_about(const Condition& condition, bool holds, Settings& settings) {
  const KeySpec& key = *find_key(condition.key);
  if (key.name == "workload.kind") {
    settings.workloads.resize(1);
    settings.workloads[0].kind = holds ? "incast" : "flows";
  } else if (key.name == "fault.kind") {
    settings.faults.resize(1);
    settings.faults[0].kind = holds ? condition.values.front() : "loss";
  } else {
    const bool named = holds == (condition.sense == Condition::Sense::one_of);
    std::vector<std::string> candidates = named ? condition.values : key.choices;
    if (!named && key.kind == KeyKind::flag) candidates = {"true", "false"};
    if (!named && candidates.empty()) candidates = {"1us", "1"};
    for (const std::string& text : candidates) {
      if (named != (std::ranges::count(condition.values, text) != 0)) continue;
      if (const auto value = convert(key, parse_loose_value(text))) return key.set(settings, *value);
    }
    ADD_FAILURE() << "no value of " << key.name << " that " << (holds ? "fulfils " : "fails ")
                  << condition.shown();
  }
}

// As if the scenario had set `key` in line 3.
std::vector<std::string> warnings_of(const KeySpec& key, Settings settings) {
  settings.set_by[key.name] = {Origin::scenario, "s.toml", {3, 1}};
  return list_idle_keys({{"base", {}, settings}});
}

TEST(idle_keys, list_idle_keys__each_key_warns_exactly_where_one_of_its_conditions_fails) {
  std::size_t conditions = 0;
  for (const KeySpec& key : scenario_keys()) {
    Settings good;
    for (const Condition& condition : key.needs) bring_about(condition, true, good);
    EXPECT_THAT(warnings_of(key, good), IsEmpty());
    for (const Condition& condition : key.needs) {
      ++conditions;
      ASSERT_NE(find_key(condition.key), nullptr) << key.name;
      Settings bad = good;
      bring_about(condition, false, bad);
      EXPECT_THAT(warnings_of(key, bad),
                  ElementsAre(fmt::format("s.toml:3:1: warning: '{}' has no effect: it needs {}", key.name,
                                          condition.shown())));
    }
  }
  EXPECT_GT(conditions, 80U);
}

// Whoever adds a key decides: it depends on another one, or it is one of these.
TEST(idle_keys, needs__is_said_of_every_key_that_does_not_always_count) {
  const std::set<std::string> always{
      "seed",
      "transport",
      "fabric.topology",
      "fabric.topology_file",  // without 'file' an error
      "fabric.hosts",
      "fabric.host_file",
      "fabric.mtu",
      "fabric.profile",
      "fabric.reserved",
      "fabric.pfc.enabled",
      "fabric.ecn.enabled",
      "fabric.weights",
      "fabric.trust",
      "fabric.congestion_control.algorithm",
      "fabric.nic.tx_latency",
      "fabric.nic.rx_latency",
      "fabric.nic.loss_recovery",
      "fabric.nic.ack_every",
      "fabric.payload",
      "measure.series",
      "measure.limit",
      "measure.hang",
  };
  for (const KeySpec& key : scenario_keys()) {
    // Costs without a profile are an error; knobs of paths are everybody's; the rest is checked by kind.
    const bool other = !key.of_settings() || key.name.starts_with("library.path.") ||
                       (key.name.starts_with("fabric.nic.") && key.needs.empty());
    EXPECT_TRUE(other || key.needs.empty() == always.contains(key.name)) << key.name;
  }
}

TEST(idle_keys, parse_scenario__names_the_place_and_what_is_missing) {
  EXPECT_THAT(
      warnings_of("[fabric]\ndscp_map = { 3 = 4 }"),
      ElementsAre("s.toml:3:12: warning: 'fabric.dscp_map' has no effect: it needs fabric.trust = dscp"));
  EXPECT_THAT(warnings_of("[fabric]\ntrust = 'dscp'\ndscp_map = { 3 = 4 }"), IsEmpty());
  EXPECT_THAT(
      warnings_of("", {"fabric.uplink_rate=1Gbps"}),
      ElementsAre("--set fabric.uplink_rate=1Gbps: warning: 'fabric.uplink_rate' has no effect: it needs "
                  "fabric.topology other than single-switch or file"));
}

TEST(idle_keys, parse_scenario__a_base_may_set_what_one_variant_uses) {
  const std::string swift = "[fabric]\ncongestion_control.swift.ai = 2.0\n";
  const std::string variants =
      "[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\nfabric.congestion_control.algorithm = '";
  EXPECT_THAT(warnings_of(swift + variants + "swift'"), IsEmpty());
  EXPECT_THAT(warnings_of(swift + variants + "dcqcn'"),
              ElementsAre("s.toml:3:31: warning: 'fabric.congestion_control.swift.ai' has no effect in any "
                          "variant: it needs fabric.congestion_control.algorithm = swift"));
  EXPECT_THAT(
      warnings_of("[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\nfabric.nic.ack_delay = '1us'"),
      ElementsAre("s.toml:6:24: warning: 'fabric.nic.ack_delay' has no effect in variant 'b': it needs "
                  "fabric.nic.ack_every other than 0"));
}

}  // namespace
}  // namespace bx::harness
