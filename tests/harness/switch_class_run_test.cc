// SPDX-License-Identifier: GPL-2.0-only
// What the keys of the switches' classes do to whole runs.
#include <gtest/gtest.h>

#include "harness/run/variant_run.h"

namespace bx::harness {
namespace {

class Quiet final : public RunObserver {
 public:
  void on_progress(const Progress& /*progress*/) override {}
  bool interrupted() override { return false; }
};

VariantResult run(const std::string& fabric, const std::string& workloads) {
  Diagnostics diagnostics;
  const auto scenario = parse_scenario("name = 'x'\n[fabric]\nhosts = 5\nmtu = 1024\n" + fabric + workloads,
                                       "s.toml", {}, diagnostics);
  EXPECT_TRUE(scenario) << diagnostics.text();
  Quiet observer;
  return run_variant(*scenario, scenario->variants.front(), {BackendKind::sim, sim::EngineKind::fast},
                     observer);
}

double metric(const VariantResult& result, const std::string& name) {
  return result.metrics.value_or(name, -1);
}

// Two hosts write as much to a third, one in priority 3, one in priority 4.
constexpr const char* kTwoClasses =
    "[[workload]]\nkind = 'flows'\nsources = 1\nsinks = 0\nsize = '8MiB'\ntraffic_class = 96\n"
    "[[workload]]\nkind = 'flows'\nsources = 2\nsinks = 0\nsize = '8MiB'\ntraffic_class = 128\n";

// The time of the first flow to end, in times of the last.
double first_by_last(const std::string& fabric) {
  const VariantResult result = run("lossless = [3, 4]\n" + fabric, kTwoClasses);
  EXPECT_TRUE(result.good()) << (result.breaches.empty() ? "" : result.breaches[0].detail);
  return metric(result, "flow.time.min") / metric(result, "flow.time.max");
}

// With a share w of the port, S bytes take S / (w C) while the other class still sends; both take 2 S / C.
TEST(switch_class_run, weights__share_a_port) {
  EXPECT_NEAR(first_by_last("weights = { 3 = 1, 4 = 1 }\n"), 1, 0.02);
  EXPECT_NEAR(first_by_last("weights = { 3 = 1, 4 = 3 }\n"), 1 / 0.75 / 2, 0.02);
  EXPECT_NEAR(first_by_last("weights = [0, 0, 0, 4, 1, 0, 0, 0]\n"), 1 / 0.8 / 2, 0.02);
  EXPECT_NEAR(first_by_last("weights = { 4 = 9 }\n"), 0.5, 0.02);  // priority 3 is strict
  EXPECT_NEAR(first_by_last(""), 0.5, 0.02);                       // both are: the higher goes first
}

// Four hosts at once overrun the buffer of a switch that does not pause them.
constexpr const char* kIncast =
    "[[workload]]\nkind = 'flows'\nsources = '1..4'\nsinks = 0\nsize = '2MiB'\ntraffic_class = 96\n";

struct Loss {
  bool drops = false;
  bool pauses = false;
  friend bool operator==(const Loss&, const Loss&) = default;
};
Loss loss_with(const std::string& fabric) {
  const VariantResult result = run("buffer = '1MiB'\n" + fabric, kIncast);
  EXPECT_GE(metric(result, "switch.drops"), 0);
  EXPECT_GE(metric(result, "pfc.pause_frames"), 0);
  return {metric(result, "switch.drops") > 0, metric(result, "pfc.pause_frames") > 0};
}

constexpr Loss kPauses{.drops = false, .pauses = true};
constexpr Loss kDrops{.drops = true, .pauses = false};

TEST(switch_class_run, lossless__classes_pause_and_others_drop) {
  EXPECT_EQ(loss_with("lossless = [3]\n"), kPauses);
  EXPECT_EQ(loss_with("lossless = [4]\n"), kDrops);
  EXPECT_EQ(loss_with("lossless = []\n"), kDrops);
}

// The traffic is DSCP 24 in priority 3.
TEST(switch_class_run, dscp_map__counts_where_dscp_is_trusted) {
  EXPECT_EQ(loss_with("trust = 'dscp'\n"), kPauses);
  EXPECT_EQ(loss_with("trust = 'dscp'\ndscp_map = { 24 = 1 }\n"), kDrops);
  EXPECT_EQ(loss_with("trust = 'pcp'\ndscp_map = { 24 = 1 }\n"), kPauses);
}

}  // namespace
}  // namespace bx::harness
