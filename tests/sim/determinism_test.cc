// SPDX-License-Identifier: GPL-2.0-only
// The same seed is the same run: twice, and on both engines.
#include <gtest/gtest.h>

#include <cstdint>

#include "sim/model/topology.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::kForever;
using testing::kLossless;
using testing::kLossy;
using testing::Star;
using testing::star_config;
using testing::StarConfig;

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t events = 0;
  Picoseconds end{};
  SwitchTotals totals{};
};

// Incast on a small buffer with everything on: pauses, marks, lossy drops, traffic both ways.
Outcome run(EngineKind kind, std::uint64_t seed) {
  StarConfig config = star_config(13, 2 * 1024 * 1024);
  config.fabric.ecn[kLossless] = {.kmin_bytes = 100'000, .kmax_bytes = 400'000, .pmax = 0.2};
  config.fabric.pause_quanta = 2000;
  Star star(kind, config, seed);
  for (std::uint16_t i = 0; i < 12; ++i) {
    star.hosts[i].send({.dst = 12, .frames = 200, .payload_bytes = 4096U - i, .ecn = Ecn::capable});
    star.hosts[i].send({.dst = static_cast<std::uint16_t>((i + 1) % 12), .frames = 100, .priority = kLossy});
    star.hosts[12].send({.dst = i, .frames = 20, .payload_bytes = 64});
  }
  for (Picoseconds limit{}; !star.engine.run(limit);) limit += microseconds{7};
  EXPECT_EQ(star.pool.in_use(), 0U);
  return {star.topology.digest().value(), star.engine.events(), star.engine.now(), star.topology.totals()};
}

TEST(Determinism, run__same_seed_same_digest_on_either_engine) {
  const Outcome first = run(EngineKind::fast, 1);
  EXPECT_GT(first.totals.pause_frames, 0U);
  EXPECT_GT(first.totals.ecn_marks, 0U);
  EXPECT_EQ(first.totals.lossless_drops, 0U);
  EXPECT_EQ(run(EngineKind::fast, 1).digest, first.digest);
  const Outcome stock = run(EngineKind::stock, 1);
  EXPECT_EQ(stock.digest, first.digest);
  EXPECT_EQ(stock.end, first.end);
  EXPECT_EQ(stock.totals.ecn_marks, first.totals.ecn_marks);
}

TEST(Determinism, run__another_seed_another_digest) {
  EXPECT_NE(run(EngineKind::fast, 1).digest, run(EngineKind::fast, 2).digest);
}

// The value itself is pinned: another machine, another build type, the same run. A change of the model that
// changes it changes runs, and says so by changing this line.
TEST(Determinism, run__the_digest_is_the_one_on_record) {
  EXPECT_EQ(run(EngineKind::fast, 1).digest, 1257160832500449756U);
}

}  // namespace
}  // namespace bx::sim
