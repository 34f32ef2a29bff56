// SPDX-License-Identifier: GPL-2.0-only
// Random whole systems, by seed. A seed that fails is run again with the command that the failure names.
#include "harness/swarm/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace bx::harness {
namespace {

SwarmOptions with(SwarmSabotage sabotage) {
  return {.mode = SwarmMode::honest, .sabotage = sabotage};
}

bool names(const SeedResult& result, const std::string& checker) {
  return std::ranges::any_of(result.report.faults,
                             [&](const SwarmFault& fault) { return fault.checker == checker; });
}

class SwarmTest : public ::testing::TestWithParam<SwarmMode> {};

TEST_P(SwarmTest, every_seed__drains_and_repeats) {
  constexpr std::uint64_t kSeeds = 30;
  const SwarmOptions options{.mode = GetParam()};
  SwarmReport total;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SeedResult result = run_seed(seed, options);
    ASSERT_TRUE(result.good()) << describe_failure(result, options);
    total.add_counts(result.report);
  }
  // The swarm does something, and something of everything.
  EXPECT_GT(total.answered, 100 * kSeeds);
  EXPECT_GT(total.one_sided, 2 * kSeeds);
  EXPECT_GT(total.user_memory, 2 * kSeeds);
  EXPECT_GT(total.parts, 2 * kSeeds);
  EXPECT_GT(total.cancelled, kSeeds);
  EXPECT_GT(total.refused, kSeeds);
  EXPECT_GT(total.expired, kSeeds);
  EXPECT_GT(total.abandoned, kSeeds);
  if (GetParam() == SwarmMode::honest) return;
  EXPECT_GT(total.failed, kSeeds);
  EXPECT_GT(total.peers_failed, kSeeds);
}

INSTANTIATE_TEST_SUITE_P(Modes, SwarmTest, ::testing::Values(SwarmMode::honest, SwarmMode::faulty),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST(run_seed, sim__passes) {
  for (const SwarmMode mode : {SwarmMode::honest, SwarmMode::faulty}) {
    const SwarmOptions options{.backend = SwarmBackend::sim, .mode = mode};
    const SeedResult result = run_seed_apart(3, options);
    EXPECT_TRUE(result.good()) << describe_failure(result, options);
    EXPECT_GT(result.report.answered, 0U);
  }
}

TEST(run_seed, sabotage__is_found_by_its_checker) {
  EXPECT_TRUE(names(run_seed(3, with(SwarmSabotage::bytes)), "bytes"));
  EXPECT_TRUE(names(run_seed(3, with(SwarmSabotage::memory)), "memory"));
  const SeedResult silent = run_seed(3, with(SwarmSabotage::silence));  // its caller may have given up
  EXPECT_TRUE(names(silent, "liveness") || names(silent, "idle"));
  EXPECT_TRUE(names(run_seed(3, with(SwarmSabotage::digest)), "digest"));
}

TEST(run_seed_apart, broken_invariant__is_reported_with_what_it_said) {
  const SeedResult result = run_seed_apart(3, with(SwarmSabotage::check));
  EXPECT_EQ(result.seed, 3U);
  EXPECT_TRUE(names(result, "process"));
  ASSERT_FALSE(result.said.empty());
  EXPECT_NE(result.said.front().find("the sabotage that was asked for"), std::string::npos);
}

TEST(run_campaign, five_seeds__all_pass_in_order) {
  std::vector<std::uint64_t> seeds;
  const auto note = [&](const SeedResult& result) { seeds.push_back(result.seed); };
  EXPECT_EQ(run_campaign({11, 15}, {}, 2, note), 0U);
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{11, 12, 13, 14, 15}));
}

TEST(run_campaign, sabotage__every_seed_is_counted) {
  const auto ignore = [](const SeedResult&) {};
  EXPECT_EQ(run_campaign({11, 13}, with(SwarmSabotage::memory), 2, ignore), 3U);
}

TEST(describe_failure, names_checker_seed_configuration_and_command) {
  SeedResult result;
  result.seed = 42;
  result.report.faults.push_back({"bytes", "host1: an answer has other bytes"});
  const SwarmOptions options{.backend = SwarmBackend::sim, .mode = SwarmMode::faulty};
  const std::string text = describe_failure(result, options);
  for (const char* part :
       {"seed 42 failed", "checker bytes: host1: an answer has other bytes", "host0: peers.max=24",
        "again: bx swarm --seeds 42..42 --on sim --mode faulty\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace bx::harness
