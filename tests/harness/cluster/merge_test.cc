// SPDX-License-Identifier: GPL-2.0-only
// Both ends of every call, told by different hosts.
#include "harness/cluster/merge.h"

#include <gtest/gtest.h>

#include "harness/scenario/scenario.h"
#include "harness/workload/outcome.h"

namespace bx::harness {
namespace {

// One client and two servers, a call to each.
struct MergeTest : ::testing::Test {
  Settings settings = [] {
    Diagnostics diagnostics;
    const auto scenario = parse_scenario(
        "name = 'x'\n[fabric]\nhosts = 3\n[[workload]]\nkind = 'ps-fetch'\nclients = 0\nservers = "
        "'1..2'\nanswer = '1KiB'\ncalls = 1\n",
        "s.toml", {}, diagnostics);
    EXPECT_TRUE(scenario) << diagnostics.text();
    return scenario->variants.front().settings;
  }();
  Plan plan = make_plan(settings);
  Oracle oracle;
  Merge merge{settings, plan, oracle};
  std::vector<AgentState> agents;
  VariantResult result;

  void SetUp() override {
    for (std::uint32_t host = 0; host < 3; ++host) {
      AgentState& agent = agents.emplace_back(AgentState{.host = host});
      agent.reported = true;
      // Host n's clock is n seconds ahead.
      for (std::uint32_t i = 0; i < ClockOffset::kRoundTrips; ++i) agent.clock.add(0, ahead(host) + 5, 10);
    }
  }
  static std::int64_t ahead(std::uint32_t host) { return std::int64_t{host} * 1'000'000'000; }
  static Instant at(std::uint32_t host, std::int64_t ns) { return Instant{} + Duration(ahead(host) + ns); }
  void client_saw(std::uint64_t call, CallState state = CallState::answered, ErrorCode code = {}) {
    CallRecord record{.start = at(0, 1000), .end = at(0, 9000)};
    record.server = plan.clients[0].calls[call].server;
    record.state = state;
    agents[0].report.calls.push_back({call, record, code});
  }
  void server_saw(std::uint32_t server, std::uint64_t call) {
    agents[server].report.requests.push_back({call, server, ahead(server) + 4000});
  }
  std::string take(const std::set<std::uint32_t>& killed = {}) {
    merge.take(agents, killed, 100'000, result);
    merge.ledger().close();
    std::string text;
    for (const Breach& breach : oracle.breaches()) text += breach.promise + ": " + breach.detail + "\n";
    return text;
  }
};

TEST_F(MergeTest, take__puts_every_host_on_one_clock) {
  for (const std::uint32_t call : {0U, 1U}) client_saw(call), server_saw(call + 1, call);
  EXPECT_EQ(take(), "");
  EXPECT_EQ(result.metrics.value_or("call.latency.max", 0), 8000);
  EXPECT_EQ(result.metrics.value_or("call.request.min", 0), 3000);
  EXPECT_EQ(result.metrics.value_or("call.request.max", 0), 3000);
  EXPECT_EQ(result.metrics.value_or("clock.error_max", 0), 5);
}

TEST_F(MergeTest, take__an_answer_without_a_request_is_a_breach_unless_the_server_is_lost) {
  client_saw(0), server_saw(1, 0);
  client_saw(1);
  EXPECT_NE(take().find("exactly-once: call 1 from host0 to host2"), std::string::npos);
}

TEST_F(MergeTest, take__what_a_lost_server_saw_is_not_held_against_anybody) {
  client_saw(0), server_saw(1, 0);
  client_saw(1);
  EXPECT_EQ(take({2}), "");
}

TEST_F(MergeTest, take__a_request_at_the_wrong_server_is_a_breach) {
  client_saw(0), server_saw(2, 0);
  client_saw(1), server_saw(2, 1);
  EXPECT_NE(take().find("right-bytes: host2 got the request of call 0"), std::string::npos);
}

TEST_F(MergeTest, take__a_call_or_request_told_of_twice_is_a_breach) {
  for (const std::uint32_t call : {0U, 1U}) client_saw(call), server_saw(call + 1, call);
  client_saw(0), server_saw(2, 1);
  const std::string breaches = take();
  EXPECT_NE(breaches.find("host0 told of call 0"), std::string::npos) << breaches;
  EXPECT_NE(breaches.find("host2 told of call 1"), std::string::npos) << breaches;
}

TEST_F(MergeTest, take__calls_that_do_not_exist_or_never_ended_are_breaches) {
  client_saw(0, CallState::started);
  agents[0].report.calls.push_back({77, agents[0].report.calls[0].record, {}});
  const std::string breaches = take();
  EXPECT_NE(breaches.find("host0 told of call 77"), std::string::npos) << breaches;
  EXPECT_NE(breaches.find("finished: call 0"), std::string::npos) << breaches;
  EXPECT_NE(breaches.find("1 of 2 calls were never started"), std::string::npos) << breaches;
}

TEST_F(MergeTest, take__failures_are_counted_by_their_code_and_judged_by_the_client) {
  client_saw(0, CallState::failed, ErrorCode::closed);
  client_saw(1), server_saw(2, 1);
  EXPECT_EQ(take(), "");
  EXPECT_EQ(result.metrics.value_or("call.errors", 0), 1);
  EXPECT_EQ(result.metrics.value_or(error_metric(ErrorCode::closed), 0), 1);
}

TEST_F(MergeTest, take__counters_are_summed_and_cpu_is_by_role) {
  for (const std::uint32_t call : {0U, 1U}) client_saw(call), server_saw(call + 1, call);
  for (AgentState& agent : agents) {
    agent.report.metrics.set("messages.sent", 2, "count");
    agent.report.cpu_ns = 10'000;
  }
  EXPECT_EQ(take(), "");
  EXPECT_EQ(result.metrics.value_or("messages.sent", 0), 6);
  EXPECT_EQ(result.metrics.value_or("cpu.clients.time", 0), 10'000);
  EXPECT_EQ(result.metrics.value_or("cpu.servers.time", 0), 20'000);
  EXPECT_DOUBLE_EQ(result.metrics.value_or("cpu.servers.utilisation", 0), 0.1);
}

}  // namespace
}  // namespace bx::harness
