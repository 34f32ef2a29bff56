// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bx::harness {
namespace {

WorkloadSpec workload(const std::string& kind, HostList clients, HostList servers) {
  WorkloadSpec spec;
  spec.kind = kind;
  spec.clients = std::move(clients);
  spec.servers = std::move(servers);
  spec.answer = SizeMix::fixed(1024);
  return spec;
}

TEST(plan, make_plan__fetches_call_every_server_in_every_round) {
  Settings settings;
  settings.workloads.push_back(workload("ps-fetch", {0, 1}, {2, 3, 4}));
  settings.workloads[0].calls = 2;
  settings.workloads[0].warm_up = 1;
  const Plan plan = make_plan(settings);
  ASSERT_EQ(plan.clients.size(), 2U);
  EXPECT_EQ(plan.calls, 18U);
  EXPECT_EQ(plan.measured_calls, 12U);
  EXPECT_EQ(plan.answer_bytes, 12U * 1024U);
  EXPECT_EQ(plan.clients[1].first_call, 9U);
  for (std::uint64_t round = 0; round < 3; ++round) {
    const auto calls = plan.clients[0].round(round);
    ASSERT_EQ(calls.size(), 3U);
    for (std::uint32_t k = 0; k < 3; ++k) EXPECT_EQ(calls[k].server, 2 + k);
  }
}

TEST(plan, make_plan__rpc_takes_one_server_after_the_other_from_different_starts) {
  Settings settings;
  settings.workloads.push_back(workload("rpc", {0, 1}, {2, 3}));
  settings.workloads[0].calls = 3;
  const Plan plan = make_plan(settings);
  EXPECT_EQ(plan.calls, 6U);
  EXPECT_EQ(plan.clients[0].fan_out, 1U);
  EXPECT_EQ(plan.clients[0].round(0)[0].server, 2U);
  EXPECT_EQ(plan.clients[0].round(1)[0].server, 3U);
  EXPECT_EQ(plan.clients[1].round(0)[0].server, 3U);
}

TEST(plan, make_plan__sizes_depend_on_the_seed_and_on_nobody_else) {
  Settings settings;
  settings.workloads.push_back(workload("incast", {0}, {2, 3, 4, 5, 6, 7, 8, 9}));
  settings.workloads[0].answer = *parse_size_mix("1B..1MiB");
  const auto sizes = [](const Plan& plan) {
    std::vector<std::uint32_t> all;
    for (const CallPlan& call : plan.clients[0].calls) all.push_back(call.answer_bytes);
    return all;
  };
  const auto first = sizes(make_plan(settings));
  EXPECT_EQ(sizes(make_plan(settings)), first);
  settings.fabric.seed = 2;
  EXPECT_NE(sizes(make_plan(settings)), first);
  settings.fabric.seed = 1;
  settings.workloads.push_back(workload("rpc", {1}, {2}));  // draws from a stream of its own
  EXPECT_EQ(sizes(make_plan(settings)), first);
}

TEST(plan, round_bounds_ps__of_the_measured_rounds) {
  Settings settings;
  settings.workloads.push_back(workload("incast", {0}, {1, 2}));
  settings.workloads[0].calls = 3;
  settings.workloads[0].warm_up = 2;
  const Plan plan = make_plan(settings);
  const auto bounds = round_bounds_ps(plan.clients[0], PathModel(settings));
  ASSERT_EQ(bounds.size(), 3U);
  const std::vector<std::uint64_t> answers{1024, 1024};
  EXPECT_EQ(bounds[0], incast_bound_ps(link_model(settings), answers));
}

TEST(plan, link_model__the_smaller_mtu_counts) {
  Settings settings;
  settings.fabric.mtu = 4096;
  settings.library.path_mtu = 1024;
  EXPECT_EQ(link_model(settings).mtu, 1024U);
}

TEST(plan, config_for__sized_for_the_workload_unless_somebody_set_it) {
  Settings settings;
  WorkloadSpec big = workload("ps-fetch", {0}, {});
  for (std::uint32_t host = 1; host <= 2000; ++host) big.servers.push_back(host);
  big.answer = SizeMix::fixed(1U << 20U);
  settings.workloads.push_back(big);
  EXPECT_EQ(peers_of(settings, 0), 2000U);
  EXPECT_EQ(peers_of(settings, 7), 1U);
  const Config client = config_for(settings, 0);
  EXPECT_EQ(client.peers_max, 2000U);
  EXPECT_GE(client.calls_max, 2000U);
  EXPECT_GE(client.memory_arena, 2000ULL << 20U);
  const Config server = config_for(settings, 7);
  EXPECT_EQ(server.peers_max, 1U);
  EXPECT_EQ(server.memory_arena, Config{}.memory_arena);
  settings.set_by["library.peers.max"] = {Origin::scenario, "s", {}};
  settings.library.peers_max = 9;
  EXPECT_EQ(config_for(settings, 0).peers_max, 9U);
}

}  // namespace
}  // namespace bx::harness
