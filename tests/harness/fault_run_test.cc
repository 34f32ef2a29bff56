// SPDX-License-Identifier: GPL-2.0-only
// Runs with faults: what is expected is no breach, what hangs is reported, what cannot be is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run/variant_run.h"

namespace bx::harness {
namespace {

using testing::Contains;
using testing::HasSubstr;

class Quiet final : public RunObserver {
 public:
  void on_progress(const Progress& /*progress*/) override {}
  bool interrupted() override { return false; }
};

VariantResult run(const std::string& more, BackendKind kind = BackendKind::sim) {
  Diagnostics diagnostics;
  auto scenario = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 5\n[[workload]]\nkind = 'ps-fetch'\nclients = 0\nservers = '1..4'\n"
      "answer = '256KiB'\ncalls = 4\nthink_time = '20us'\n" +
          more,
      "s.toml", {}, diagnostics);
  EXPECT_TRUE(scenario) << diagnostics.text();
  Quiet observer;
  return run_variant(*scenario, scenario->variants.front(), {.kind = kind}, observer);
}

double metric(const VariantResult& result, const std::string& name) {
  return result.metrics.value_or(name, -1);
}

constexpr const char* kBlackHole =
    "[[fault]]\nkind = 'black-hole'\ntarget = 'host3'\nat = '30us'\n[library]\npath.ack_timeout = 4\n";

TEST(fault_run, failed_calls__are_breaches_unless_an_expectation_is_about_them) {
  const VariantResult surprised = run(kBlackHole);
  ASSERT_FALSE(surprised.breaches.empty());
  EXPECT_EQ(surprised.breaches[0].promise, "call-failed");
  const VariantResult expected =
      run(std::string(kBlackHole) + "[[expect]]\nmetric = 'call.errors'\nat_least = 1\n");
  EXPECT_TRUE(expected.breaches.empty()) << expected.breaches[0].detail;
  EXPECT_TRUE(expected.good());
  EXPECT_GE(metric(expected, "call.errors"), 1);
  EXPECT_EQ(metric(expected, "workload.calls") + metric(expected, "call.errors"), 16);
  ASSERT_EQ(expected.faults.size(), 1U);
  EXPECT_EQ(expected.faults[0].kind, "black-hole");
  EXPECT_EQ(expected.faults[0].at_ns, 30'000U);
  EXPECT_TRUE(expected.faults[0].began);
  EXPECT_EQ(static_cast<double>(expected.faults[0].hits), metric(expected, "fault.packets_lost"));
}

TEST(fault_run, failed_calls__of_another_code_than_expected_are_breaches) {
  const VariantResult result =
      run(std::string(kBlackHole) + "[[expect]]\nmetric = 'call.errors.too_large'\nequals = 0\n");
  ASSERT_FALSE(result.breaches.empty());
  EXPECT_EQ(result.breaches[0].promise, "call-failed");
}

TEST(fault_run, process_kill__ends_the_calls_to_it_and_a_restart_serves_again) {
  const VariantResult result =
      run("[[fault]]\nkind = 'process-kill'\ntarget = 'host2'\nat = '50us'\nduration = '100us'\n"
          "[[expect]]\nmetric = 'call.errors'\nat_least = 1\n");
  EXPECT_TRUE(result.good()) << (result.breaches.empty() ? "" : result.breaches[0].detail);
  EXPECT_TRUE(result.faults.at(0).ended);
  EXPECT_EQ(metric(result, "workload.calls") + metric(result, "call.errors"), 16);
}

TEST(fault_run, hang__a_pause_storm_without_retries_names_the_storming_host) {
  const std::string storm =
      "[[fault]]\nkind = 'pause-storm'\ntarget = 'host0'\nat = '10us'\n[measure]\nhang = '5ms'\n"
      "[library]\npath.ack_timeout = 31\n";
  const VariantResult result = run(storm);
  EXPECT_THAT(result.hang.reason, HasSubstr("nothing has got done for 5ms in phase measure"));
  EXPECT_THAT(result.hang.waits, Contains(HasSubstr("host0 pauses switch0:0 in priority 3")));
  EXPECT_THAT(result.hang.waits, Contains(HasSubstr("host0: ")));
  EXPECT_FALSE(result.good());
  ASSERT_FALSE(result.breaches.empty());
  EXPECT_EQ(result.breaches[0].promise, "finished");
  EXPECT_LT(result.hang.at_ns, 50'000'000U);
  const VariantResult expected = run(storm + "[[expect]]\nmetric = 'run.hung'\nequals = 1\n");
  EXPECT_TRUE(expected.good()) << (expected.breaches.empty() ? "" : expected.breaches[0].detail);
}

TEST(fault_run, hang__a_black_hole_and_an_endless_ack_timeout_is_reported_by_queue_pair) {
  const VariantResult result =
      run("[[fault]]\nkind = 'black-hole'\ntarget = 'host3'\nat = '10us'\n[measure]\nhang = '5ms'\n"
          "[library]\npath.ack_timeout = 31\n");
  EXPECT_THAT(result.hang.reason, HasSubstr("nothing has got done"));
  EXPECT_THAT(result.hang.waits, Contains(HasSubstr("host0 qp ")));
  EXPECT_THAT(result.hang.waits, Contains(HasSubstr("to host3 qp ")));
}

TEST(fault_run, hang__is_excused_while_a_fault_is_still_to_end) {
  const VariantResult result =
      run("[[fault]]\nkind = 'pause-storm'\ntarget = 'host0'\nat = '10us'\nduration = '20ms'\n"
          "[measure]\nhang = '5ms'\n[library]\npath.ack_timeout = 31\n");
  EXPECT_TRUE(result.good()) << (result.breaches.empty() ? "" : result.breaches[0].detail);
  EXPECT_EQ(metric(result, "run.hung"), 0);
}

TEST(fault_run, limit__that_is_reached_reports_who_waits_too) {
  const VariantResult result = run("[measure]\nlimit = '600us'\n");
  EXPECT_THAT(result.hang.reason, HasSubstr("the limit of 600us simulated time is reached"));
  EXPECT_THAT(result.hang.waits, Contains(HasSubstr("host0: ")));
}

TEST(fault_run, loopback__refuses_a_fault_that_it_cannot_bring_about) {
  const VariantResult refused = run(kBlackHole, BackendKind::loopback);
  EXPECT_EQ(refused.status, RunStatus::refused);
  EXPECT_THAT(refused.message,
              HasSubstr("backend loopback has no network in which [[fault]] number 1 (black-hole of "
                        "host3)"));
  const VariantResult disabled =
      run("[[fault]]\nkind = 'black-hole'\ntarget = 'host3'\nenabled = false\n", BackendKind::loopback);
  EXPECT_TRUE(disabled.good());
}

TEST(fault_run, wire__faults_and_hang_cross_the_process_boundary) {
  VariantResult result;
  result.faults = {{"loss", "host1", 1, 2, true, false, 3}};
  result.hang = {"stuck", 17, {"a waits for b"}};
  const VariantResult copy = from_wire(to_wire(result));
  ASSERT_EQ(copy.faults.size(), 1U);
  EXPECT_EQ(copy.faults[0].target, "host1");
  EXPECT_EQ(copy.faults[0].hits, 3U);
  EXPECT_EQ(copy.hang.reason, "stuck");
  EXPECT_EQ(copy.hang.waits, result.hang.waits);
}

}  // namespace
}  // namespace bx::harness
