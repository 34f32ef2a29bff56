// SPDX-License-Identifier: GPL-2.0-only
// A crowded fabric, as in `bx perf sim permutation-1024` but smaller: what only makes the model fast must not
// change a run.
#include "sim/provider/raw_traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace bx::sim {
namespace {

constexpr std::uint16_t kHosts = 54;

SimConfig fat_tree(EngineKind engine) {
  SimConfig config;
  config.hosts = kHosts;
  config.topology.shape = "fat-tree";
  config.payload = "lengths";
  config.engine = engine;
  return config;
}

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t events = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

enum class Announced : std::uint8_t { no, yes };

// Every host sends 1 MiB to the one 20 further on, all at once.
Outcome run(EngineKind engine, Announced announced) {
  const auto traffic = RawTraffic::create(fat_tree(engine)).value();
  if (announced == Announced::no) traffic->network().engine().announce_to(nullptr);
  std::vector<RawFlow> flows;
  for (std::uint16_t from = 0; from < kHosts; ++from) {
    flows.push_back({from, static_cast<std::uint16_t>((from + 20) % kHosts), std::uint64_t{1} << 20U});
  }
  traffic->post(flows);
  EXPECT_TRUE(traffic->run());
  return {traffic->network().topology().digest().value(), traffic->network().engine().events()};
}

TEST(raw_traffic, run__is_the_same_with_and_without_announcements) {
  const Outcome usual = run(EngineKind::fast, Announced::yes);
  EXPECT_GT(usual.events, 50'000U);
  EXPECT_EQ(run(EngineKind::fast, Announced::no), usual);
}

TEST(raw_traffic, run__is_the_same_on_either_engine) {
  EXPECT_EQ(run(EngineKind::stock, Announced::no).digest, run(EngineKind::fast, Announced::yes).digest);
}

}  // namespace
}  // namespace bx::sim
