// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/outcome.h"

#include <gtest/gtest.h>

#include "harness/measure/metric_set.h"
#include "harness/workload/pattern.h"

namespace bx::harness {
namespace {

// Two rounds of two calls, the first a warm-up; the test says when each call starts and ends.
struct OutcomeTest : ::testing::Test {
  OutcomeTest() {
    ClientPlan client;
    client.fan_out = 2;
    client.warm_up_rounds = 1;
    client.rounds = 1;
    client.calls = {{1, 64, 4096}, {2, 64, 4096}, {1, 64, 4096}, {2, 64, 4096}};
    plan.clients.push_back(client);
    plan.calls = 4;
  }
  void call(std::uint64_t id, std::int64_t start, std::int64_t end) {
    std::vector<std::byte> answer(4096);
    fill_pattern(PatternOf::answer, id, answer);
    ledger.on_start(id, 0, static_cast<std::uint32_t>(1 + id % 2), Instant{} + Duration(start));
    ledger.on_request(id, static_cast<std::uint32_t>(1 + id % 2), {});
    ledger.on_answer(id, Instant{} + Duration(end), answer, 4096);
  }

  Plan plan;
  Oracle oracle;
  Ledger ledger{4, oracle};
  PathModel paths{
      LinkModel{100'000'000'000, 1'000'000, 4096}};  // a round takes at least 3002.72 ns, one call 2668.48
};

TEST_F(OutcomeTest, report_outcome__of_the_measured_round_only) {
  call(0, 0, 100'000), call(1, 0, 100'000);
  call(2, 200'000, 203'000), call(3, 200'100, 204'000);
  MetricSet set;
  report_outcome(plan, ledger, &paths, set);
  EXPECT_EQ(set.value_or("fetch.time", 0), 4000);
  EXPECT_EQ(set.value_or("call.latency.min", 0), 3000);
  EXPECT_EQ(set.value_or("call.latency.max", 0), 3900);
  EXPECT_EQ(set.value_or("workload.calls", 0), 2);
  EXPECT_EQ(set.value_or("workload.duration", 0), 4000);
  EXPECT_DOUBLE_EQ(set.value_or("goodput", 0), 8192 * 8 / 4e-6);
  EXPECT_DOUBLE_EQ(set.value_or("bound.line_rate", 0), 3002.72);
  EXPECT_DOUBLE_EQ(set.value_or("bound.ratio", 0), 4000 / 3002.72);
  MetricSet declared;
  declare_outcome(true, declared);
  for (const Metric& metric : set.all()) {
    ASSERT_NE(declared.find(metric.name), nullptr) << metric.name;
    EXPECT_EQ(declared.find(metric.name)->unit, metric.unit) << metric.name;
  }
}

TEST_F(OutcomeTest, report_outcome__an_unfinished_round_has_no_fetch_time) {
  call(2, 200'000, 203'000);
  MetricSet set;
  report_outcome(plan, ledger, nullptr, set);
  EXPECT_EQ(set.find("fetch.time"), nullptr);
  EXPECT_EQ(set.find("bound.line_rate"), nullptr);
  EXPECT_EQ(set.value_or("workload.calls", 0), 1);
}

TEST_F(OutcomeTest, report_outcome__nothing_measured) {
  MetricSet set;
  report_outcome(plan, ledger, nullptr, set);
  EXPECT_EQ(set.find("call.latency.mean"), nullptr);
  EXPECT_EQ(set.value_or("workload.duration", -1), 0);
}

TEST_F(OutcomeTest, check_closed_form__at_the_bound_is_allowed) {
  call(2, 200'000, 203'002), call(3, 200'000, 203'000);
  check_closed_form(plan, ledger, paths, oracle);
  EXPECT_TRUE(oracle.ok()) << oracle.breaches()[0].detail;
}

TEST_F(OutcomeTest, check_closed_form__a_round_below_it_is_a_breach) {
  call(2, 200'000, 203'001), call(3, 200'000, 203'000);
  check_closed_form(plan, ledger, paths, oracle);
  ASSERT_EQ(oracle.breaches().size(), 1U);
  EXPECT_EQ(oracle.breaches()[0].promise, "closed-form");
  EXPECT_EQ(oracle.breaches()[0].detail,
            "round 1 of host0 took 3001 ns; its 2 answers cannot arrive in less than 3002720 ps");
}

TEST_F(OutcomeTest, check_closed_form__a_single_answer_below_it_is_a_breach) {
  call(2, 200'000, 202'600), call(3, 200'000, 204'000);
  check_closed_form(plan, ledger, paths, oracle);
  ASSERT_EQ(oracle.breaches().size(), 1U);
  EXPECT_EQ(oracle.breaches()[0].detail,
            "call 2 from host0 to host1 took 2600 ns for 4096 bytes; the least possible is 2668480 ps");
}

}  // namespace
}  // namespace bx::harness
