// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/fault_plan.h"

#include <gtest/gtest.h>

#include "sim/model/topology_shapes.h"

namespace bx::sim {
namespace {

constexpr LinkSpeed kLink{{100'000'000'000}, microseconds{1}};

TopologyPlan plan() {
  return leaf_spine(
      {.leaves = 2, .spines = 2, .hosts_per_leaf = 2, .host_link = kLink, .fabric_link = kLink});
}

FaultSpec spec(FaultKind kind, std::string target, std::uint16_t given = 0) {
  return {.kind = kind, .target = std::move(target), .given = given};
}

TEST(FaultTarget, find__knows_hosts_ports_links_and_queue_pairs) {
  EXPECT_EQ(find_fault_target(plan(), "host3").form, fault_target::kHost);
  EXPECT_EQ(find_fault_target(plan(), "host3").host, 3);
  EXPECT_EQ(find_fault_target(plan(), "leaf1:0").form, fault_target::kPort);
  EXPECT_EQ(find_fault_target(plan(), "leaf0-spine1").form, fault_target::kLink);
  const FaultTarget queue = find_fault_target(plan(), "host2:qp12");
  EXPECT_EQ(queue.form, fault_target::kQueue);
  EXPECT_EQ(queue.host, 2);
  EXPECT_EQ(queue.queue_pair, 12U);
}

TEST(FaultTarget, find__the_first_named_end_sends) {
  const TopologyPlan p = plan();
  const FaultTarget forth = find_fault_target(p, "leaf0-spine1");
  const FaultTarget back = find_fault_target(p, "spine1-leaf0");
  ASSERT_EQ(forth.ends.size(), 1U);
  ASSERT_EQ(back.ends.size(), 1U);
  EXPECT_EQ(forth.ends[0].link, back.ends[0].link);
  EXPECT_NE(forth.ends[0].end, back.ends[0].end);
  EXPECT_EQ(node_name(p, p.links[forth.ends[0].link].ends[forth.ends[0].end]), "leaf0");
  const FaultTarget host = find_fault_target(p, "host1");
  EXPECT_EQ(node_name(p, p.links[host.ends[0].link].ends[host.ends[0].end]), "host1");
}

TEST(FaultTarget, find__nothing_for_what_is_not_there) {
  for (const char* name : {"", "host4", "host03", "leaf0", "leaf0:4", "leaf2:0", "leaf0-leaf1", "host0:qp0",
                           "host0:qp01", "host0:3", "leaf0:qp1", "host0:qp", "host9:qp1"}) {
    EXPECT_EQ(find_fault_target(plan(), name).form, 0) << name;
  }
}

TEST(FaultPlan, find_fault_error__every_form_with_what_it_needs_is_right) {
  for (const FaultForm& form : fault_forms()) {
    std::string target = "leaf0-spine0";
    if ((form.targets & fault_target::kHost) != 0) target = "host0";
    if ((form.targets & fault_target::kQueue) != 0) target = "host0:qp1";
    FaultSpec fault = spec(form.kind, target, form.needs);
    fault.duration = microseconds{1};
    fault.period = microseconds{2};
    fault.rate = {1};
    EXPECT_EQ(find_fault_error(fault, plan()), "") << form.name;
    fault.given = static_cast<std::uint16_t>(form.needs | form.may);
    EXPECT_EQ(find_fault_error(fault, plan()), "") << form.name;
  }
}

TEST(FaultPlan, find_fault_error__names_what_is_missing_and_what_is_not_a_parameter) {
  EXPECT_EQ(find_fault_error(spec(FaultKind::loss, "host0"), plan()), "kind = loss needs probability");
  EXPECT_EQ(find_fault_error(spec(FaultKind::qp_error, "host0:qp1", fault_field::kPsn), plan()),
            "psn is no parameter of kind = qp-error on target = host0:qp1, which has none");
  EXPECT_EQ(find_fault_error(spec(FaultKind::black_hole, "host0", fault_field::kPsn), plan()),
            "psn is no parameter of kind = black-hole on target = host0, whose are: duration");
}

TEST(FaultPlan, find_fault_error__lists_what_exists) {
  EXPECT_EQ(
      find_fault_error(spec(FaultKind::nic_reset, "host7"), plan()),
      "target = 'host7' does not exist: there are host0 to host3 and the switches leaf0 (ports 0 to 3), "
      "leaf1 (ports 0 to 3), spine0 (ports 0 to 1), spine1 (ports 0 to 1); kind = nic-reset is done to "
      "a host (host0)");
  EXPECT_EQ(find_fault_error(spec(FaultKind::drop, "host0", fault_field::kPsn), plan()),
            "target = 'host0' is not what kind = drop is done to: a queue pair (host0:qp1)");
}

TEST(FaultPlan, find_fault_error__values_out_of_range) {
  FaultSpec flap = spec(FaultKind::link_flap, "host0",
                        fault_field::kDuration | fault_field::kPeriod | fault_field::kCount);
  flap.duration = flap.period = microseconds{1};
  EXPECT_NE(find_fault_error(flap, plan()).find("period must be longer"), std::string::npos);
  FaultSpec loss = spec(FaultKind::loss, "host0", fault_field::kProbability);
  loss.probability = 1.5;
  EXPECT_EQ(find_fault_error(loss, plan()), "probability is 0 to 1");
}

}  // namespace
}  // namespace bx::sim
