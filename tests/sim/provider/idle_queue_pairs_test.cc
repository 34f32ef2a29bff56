// SPDX-License-Identifier: GPL-2.0-only
// Many open queue pairs of which few are active: what an idle one holds, and that it costs nothing.
#include <gtest/gtest.h>

#include <vector>

#include "tests/sim/nic_world.h"
#include "tests/support/allocation_guard.h"

namespace bx::sim {
namespace {

constexpr std::size_t kMany = 100'000;

WorldConfig config() {
  return {.cq_depth = 4096, .send_depth = 128, .segments_max = 4, .inline_max = 64};
}

using Pairs = std::vector<std::pair<RcQueuePair*, RcQueuePair*>>;

Pairs open(World& world, std::size_t count) {
  Pairs pairs;
  pairs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) pairs.push_back(world.connect());
  return pairs;
}

// WRITEs and READs over four queue pairs, the first and the last opened among them.
void exchange(World& world, const Pairs& pairs) {
  const Segment segment = world.a.segment(0, 10'000);
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}, std::size_t{2}, pairs.size() - 1}) {
    for (const RequestOpcode opcode : {RequestOpcode::write, RequestOpcode::read}) {
      world.a.post(*pairs[which].first, {.segments = {&segment, 1},
                                         .remote_addr = world.b.at(0),
                                         .rkey = world.b.keys.rkey,
                                         .opcode = opcode});
    }
  }
  world.run();
  EXPECT_EQ(world.a.sends().size(), 8U);
}

TEST(idle_queue_pairs, open__a_hundred_thousand_take_little_memory) {
  World world(config());
  open(world, 1);
  const std::uint64_t before = test::allocated_bytes();
  const Pairs pairs = open(world, kMany);
  const std::uint64_t bytes = (test::allocated_bytes() - before) / (2 * kMany);
  RecordProperty("bytes_per_idle_queue_pair", static_cast<int>(bytes));
  EXPECT_LE(bytes, 1536U) << "of an idle queue pair, its share of the tables that grew included";
  EXPECT_LE(sizeof(RcQueuePair), 1100U);
  exchange(world, pairs);
  EXPECT_EQ(world.a.nic.blocks().in_use(), 0U) << "what is idle again holds no send queue";
}

TEST(idle_queue_pairs, run__costs_the_same_events_whatever_their_number) {
  const auto events = [](std::size_t count) {
    World world(config());
    const Pairs pairs = open(world, count);
    exchange(world, pairs);
    const std::uint64_t begin = world.engine.events();
    for (int round = 0; round < 10; ++round) exchange(world, pairs);
    return world.engine.events() - begin;
  };
  EXPECT_EQ(events(10), events(kMany));
}

TEST(idle_queue_pairs, post__the_first_of_each_of_64_allocates_nothing) {
  World world(config());
  const Pairs pairs = open(world, BlockPool::kReady);
  const Segment segment = world.a.segment(0, 100);
  const SendRequest request{
      .segments = {&segment, 1}, .remote_addr = world.b.at(0), .rkey = world.b.keys.rkey};
  const test::AllocationCount count;
  for (const auto& [qp, peer] : pairs) EXPECT_EQ(qp->post_send({&request, 1}).value(), 1U);
  EXPECT_EQ(count.since(), 0U);
  EXPECT_EQ(world.a.nic.blocks().in_use(), BlockPool::kReady);
}

TEST(idle_queue_pairs, send_queue__its_memory_goes_from_one_to_the_next) {
  World world(config());
  const Pairs pairs = open(world, 64);
  exchange(world, pairs);
  const std::uint64_t before = test::allocated_bytes();
  const Segment segment = world.a.segment(0, 100);
  for (const auto& [qp, peer] : pairs) {
    world.write(*qp, {.from = segment});
    EXPECT_EQ(world.a.nic.blocks().in_use(), 1U);
    world.run();
    std::array<WorkCompletion, 4> out;
    EXPECT_EQ(world.a.send_cq.poll(out), 1U);
    EXPECT_EQ(world.a.nic.blocks().in_use(), 0U);
  }
  EXPECT_EQ(test::allocated_bytes(), before);
}

}  // namespace
}  // namespace bx::sim
