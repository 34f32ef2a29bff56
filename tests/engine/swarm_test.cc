// SPDX-License-Identifier: BSD-3-Clause
// Random whole systems. A seed that fails is run again with
//   BX_SWARM_FIRST=<seed> BX_SWARM_COUNT=1 engine_tests --gtest_filter='*Swarm*'
#include "tests/engine/swarm.h"

#include <cstdlib>

namespace bx::testing {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class SwarmTest : public ::testing::TestWithParam<SwarmMode> {};

TEST_P(SwarmTest, every_seed__drains_and_repeats) {
  constexpr std::uint64_t kSeeds = 60;
  const std::uint64_t first = from_environment("BX_SWARM_FIRST", 1);
  const std::uint64_t count = from_environment("BX_SWARM_COUNT", kSeeds);
  SwarmReport total;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SwarmReport report = Swarm(seed, GetParam()).run();
    for (const std::string& fault : report.faults) ADD_FAILURE() << fault;
    EXPECT_EQ(Swarm(seed, GetParam()).run().digest, report.digest) << "two runs of one seed differ";
    if (HasFailure()) return;
    total.calls += report.calls;
    total.answered += report.answered;
    total.refused += report.refused;
    total.expired += report.expired;
    total.abandoned += report.abandoned;
    total.failed += report.failed;
    total.peers_failed += report.peers_failed;
  }
  // The swarm does something, and something of everything.
  if (count < kSeeds) return;
  EXPECT_GT(total.answered, 100 * count);
  EXPECT_GT(total.refused, count);
  EXPECT_GT(total.expired, count);
  EXPECT_GT(total.abandoned, count);
  if (GetParam() == SwarmMode::faulty) {
    EXPECT_GT(total.failed, count);
    EXPECT_GT(total.peers_failed, count);
  }
  RecordProperty("calls", std::to_string(total.calls));
}

INSTANTIATE_TEST_SUITE_P(Modes, SwarmTest, ::testing::Values(SwarmMode::honest, SwarmMode::faulty),
                         [](const auto& param) {
                           return param.param == SwarmMode::honest ? "honest" : "faulty";
                         });

}  // namespace
}  // namespace bx::testing
