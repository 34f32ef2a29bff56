// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/link_faults.h"

#include <gtest/gtest.h>

#include "harness/scenario/scenario.h"

namespace bx::harness {
namespace {

Settings settings(const std::string& faults) {
  Diagnostics diagnostics;
  const auto scenario = parse_scenario(
      "name = 'x'\n[fabric]\nhosts = 5\nrate = '100Mbps'\ndelay = '10us'\n[[workload]]\nkind = 'ps-fetch'\n"
      "clients = 0\nservers = '1..4'\nanswer = '1KiB'\n" +
          faults,
      "s.toml", {}, diagnostics);
  EXPECT_TRUE(scenario) << diagnostics.text();
  return scenario->variants.front().settings;
}

std::string told(const std::vector<FaultStep>& steps) {
  std::string text;
  for (const FaultStep& step : steps) {
    const char* names[] = {"cut", "mend", "impair", "repair", "kill", "restart"};
    text += std::to_string(step.at_ns / 1'000'000) + names[static_cast<std::size_t>(step.deed)] +
            (step.first ? "(" : "") + (step.last ? ")" : "") + " ";
  }
  return text;
}

TEST(link_faults, plan_fault_steps__each_kind_begins_and_ends) {
  EXPECT_EQ(told(plan_fault_steps(settings("[[fault]]\nkind='link-down'\ntarget='host1'\nat='5ms'\n"))),
            "5cut( ");
  EXPECT_EQ(told(plan_fault_steps(
                settings("[[fault]]\nkind='link-down'\ntarget='host1'\nat='5ms'\nduration='2ms'\n"))),
            "5cut( 7mend) ");
  EXPECT_EQ(
      told(plan_fault_steps(settings("[[fault]]\nkind='link-flap'\ntarget='host1'\nat='1ms'\nduration='2ms'\n"
                                     "period='10ms'\ncount=2\n"))),
      "1cut( 3mend 11cut 13mend) ");
  EXPECT_EQ(told(plan_fault_steps(
                settings("[[fault]]\nkind='process-kill'\ntarget='host1'\nat='1ms'\nduration='2ms'\n"))),
            "1kill( 3restart) ");
  EXPECT_EQ(told(plan_fault_steps(
                settings("[[fault]]\nkind='host-crash'\ntarget='host1'\nat='1ms'\nduration='2ms'\n"))),
            "1cut( 1kill 3mend 3restart) ");
}

TEST(link_faults, plan_fault_steps__are_in_the_order_of_time_and_leave_out_what_is_disabled) {
  const Settings two = settings(
      "[[fault]]\nkind='loss'\ntarget='host1'\nprobability=0.01\nat='9ms'\n[[fault]]\nkind='link-down'\n"
      "target='host2'\nat='1ms'\nduration='20ms'\n[[fault]]\nkind='process-kill'\ntarget='host3'\nenabled="
      "false\n");
  EXPECT_EQ(told(plan_fault_steps(two)), "1cut( 9impair( 21mend) ");
}

TEST(link_faults, lines_for__impair_and_repair_the_sides_of_a_link) {
  const Settings loss = settings(
      "[[fault]]\nkind='loss'\ntarget='host1'\nprobability=0.01\ndirection='received'\nduration='5ms'\n"
      "[[fault]]\nkind='delay'\ntarget='host1'\ndelay='90us'\n");
  LinkFaults links(loss, {.hosts = 5, .rate_bps = 100'000'000, .delay_ns = 10'000});
  const std::vector<FaultStep> steps = plan_fault_steps(loss);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(
      links.lines_for(steps[0]),
      "qdisc replace dev p2 root netem limit 1000000 delay 10us rate 100000000bit 24 loss 1.0000% corrupt "
      "0.0000%\n");
  // What is on a side already stays there.
  EXPECT_EQ(
      links.lines_for(steps[1]),
      "qdisc replace dev h2 root netem limit 1000000 delay 100us rate 100000000bit 24 loss 0.0000% corrupt "
      "0.0000%\n"
      "qdisc replace dev p2 root netem limit 1000000 delay 100us rate 100000000bit 24 loss 1.0000% corrupt "
      "0.0000%\n");
  EXPECT_EQ(
      links.lines_for(steps[2]),
      "qdisc replace dev p2 root netem limit 1000000 delay 100us rate 100000000bit 24 loss 0.0000% corrupt "
      "0.0000%\n");
}

TEST(link_faults, why_no_cluster_faults__names_the_fault_and_the_reason) {
  const auto why = [](BackendKind kind, const std::string& fault) {
    return why_no_cluster_faults(kind, settings("[[fault]]\n" + fault));
  };
  EXPECT_EQ(why(BackendKind::rxe, "kind='link-down'\ntarget='host1'\n"), "");
  EXPECT_EQ(why(BackendKind::rxe, "kind='loss'\ntarget='host1'\nprobability=0.1\n"), "");
  EXPECT_EQ(why(BackendKind::verbs, "kind='process-kill'\ntarget='host1'\n"), "");
  EXPECT_NE(why(BackendKind::verbs, "kind='link-down'\ntarget='host1'\n").find("not ours to break"),
            std::string::npos);
  EXPECT_NE(
      why(BackendKind::rxe, "kind='pause-storm'\ntarget='host1'\n").find("number 1 (pause-storm of host1)"),
      std::string::npos);
  EXPECT_NE(why(BackendKind::rxe, "kind='link-down'\ntarget='switch0:1'\n"), "");
}

}  // namespace
}  // namespace bx::harness
