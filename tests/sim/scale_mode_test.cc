// SPDX-License-Identifier: GPL-2.0-only
// Lengths-only runs: the same packets, completions and counters as with bytes, and no memory touched.
#include <gtest/gtest.h>

#include <algorithm>

#include "libbx/base/prng.h"
#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

constexpr std::uint64_t kAllBytes = UINT64_MAX;

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t events = 0;
  std::uint64_t completions = 0;
  std::uint64_t failures = 0;
  std::uint64_t delivered = 0;
  bool target_touched = false;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

enum class Case { clean, lossy, wrong_keys, costs, cuts_off_memory };

constexpr std::size_t kTarget = 400'000;

void post_mix(World& world, Prng& random, RcQueuePair& qp, std::uint32_t i, Case which) {
  const auto length = static_cast<std::uint32_t>(random.next() % 20'000);
  const auto opcode = std::array{RequestOpcode::send, RequestOpcode::write, RequestOpcode::read,
                                 RequestOpcode::write_with_imm}[i % 4];
  const Segment segment = world.a.segment(opcode == RequestOpcode::read ? 300'000 : 0, length);
  const std::uint32_t wrong = which == Case::wrong_keys && i % 20 == 13 ? 1 : 0;
  world.a.post(qp, {.id = i,
                    .segments = {&segment, 1},
                    .remote_addr = world.b.at(opcode == RequestOpcode::read ? 500'000 : kTarget),
                    .rkey = world.b.keys.rkey + wrong,
                    .opcode = opcode,
                    .inlined = length <= 200});
}

Outcome run(Case which, std::uint64_t kept) {
  WorldConfig config{.payload_kept = kept};
  if (which == Case::costs) config.costs.fill(*find_nic_profile("connectx5"));
  World world(config);
  RunDigest digest;
  world.a.nic.port().set_digest(&digest);
  world.b.nic.port().set_digest(&digest);
  Prng random(7);
  Prng losses(8);
  if (which == Case::lossy) world.b.filter.lose = [&](const Frame&) { return losses.next() % 40 == 0; };
  world.a.fill(0, 20'000, 1);
  std::vector<RcQueuePair*> pairs;
  for (int i = 0; i < 8; ++i) pairs.push_back(world.connect({.mtu = 1024, .ack_timeout = 6}).first);
  Outcome outcome;
  for (std::uint32_t i = 0; i < 160; ++i) {
    world.b.receive_into(i, {world.b.segment(kTarget, 20'000)});
    post_mix(world, random, *pairs[i % 8], i, which);
    world.run(world.engine.now() + microseconds{random.next() % 4});
    if (which == Case::cuts_off_memory && i == 100) world.b.nic.memory().remove(world.b.keys);
  }
  world.run();
  for (const WorkCompletion& completion : world.a.sends()) {
    ++outcome.completions;
    outcome.failures += completion.status == CompletionStatus::success ? 0 : 1;
  }
  outcome.digest = digest.value();
  outcome.events = world.engine.events();
  outcome.delivered =
      world.a.nic.counters().payload_bytes_delivered + world.b.nic.counters().payload_bytes_delivered;
  const auto target = world.b.bytes(kTarget, 20'000);
  outcome.target_touched = std::ranges::any_of(target, [](std::byte b) { return b != std::byte{0}; });
  EXPECT_EQ(world.frames.in_use(), 0U);
  world.a.nic.port().set_digest(nullptr);
  world.b.nic.port().set_digest(nullptr);
  return outcome;
}

class ScaleModeTest : public ::testing::TestWithParam<Case> {};

TEST_P(ScaleModeTest, run__is_the_run_with_bytes) {
  Outcome moved = run(GetParam(), kAllBytes);
  EXPECT_TRUE(moved.target_touched);
  Outcome lengths = run(GetParam(), 0);
  EXPECT_FALSE(lengths.target_touched);
  moved.target_touched = false;
  // Late bytes have events of their own; the digest is over packets.
  if (GetParam() == Case::costs) moved.events = lengths.events = 0;
  EXPECT_EQ(lengths, moved);
  EXPECT_GT(moved.completions, 0U);
  EXPECT_EQ(moved.failures > 0, GetParam() == Case::wrong_keys || GetParam() == Case::cuts_off_memory);
  EXPECT_EQ(run(GetParam(), 4096).digest, moved.digest);
}

INSTANTIATE_TEST_SUITE_P(cases, ScaleModeTest,
                         ::testing::Values(Case::clean, Case::lossy, Case::wrong_keys, Case::costs,
                                           Case::cuts_off_memory));

// The begin of each message is there, in whole packets, and nothing behind it.
TEST(ScaleMode, payload_kept__carries_the_begin_of_each_message) {
  World world({.payload_kept = 1500});
  const auto [qp, peer] = world.connect({.mtu = 1024});
  world.a.fill(0, 8192, 3);
  world.b.receive_into(1, {world.b.segment(0, 8192)});
  const Segment segment = world.a.segment(0, 8192);
  world.a.post(*qp, {.segments = {&segment, 1}});
  world.write(*qp, {.from = segment, .at = 20'000});
  world.run();
  ASSERT_EQ(world.a.sends().size(), 2U);
  for (const std::size_t at : {std::size_t{0}, std::size_t{20'000}}) {
    EXPECT_TRUE(std::ranges::equal(world.a.bytes(0, 2048), world.b.bytes(at, 2048)));
    const auto rest = world.b.bytes(at + 2048, 8192 - 2048);
    EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(ScaleMode, atomics__are_carried_out) {
  World world({.payload_kept = 0});
  const auto [qp, peer] = world.connect();
  const Segment segment = world.a.segment(0, 8);
  world.a.post(*qp, {.segments = {&segment, 1},
                     .remote_addr = world.b.at(64),
                     .rkey = world.b.keys.rkey,
                     .compare_add = 5,
                     .opcode = RequestOpcode::fetch_add});
  world.run();
  EXPECT_EQ(std::to_integer<int>(world.b.memory[64]), 5);
}

}  // namespace
}  // namespace bx::sim
