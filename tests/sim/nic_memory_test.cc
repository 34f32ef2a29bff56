// SPDX-License-Identifier: GPL-2.0-only
// Memory whose keys end while somebody means to use them: by deregistration, by local invalidation, by the
// peer's SEND with invalidate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using Status = CompletionStatus;
using testing::ElementsAre;
using testing::Pair;

constexpr MemoryAccess kAll = MemoryAccess::local_write | MemoryAccess::remote_read |
                              MemoryAccess::remote_write | MemoryAccess::remote_atomic;
constexpr std::uint32_t kLong = 400'000;

std::vector<std::pair<std::uint64_t, Status>> outcomes(const std::vector<WorkCompletion>& completions) {
  std::vector<std::pair<std::uint64_t, Status>> out;
  for (const WorkCompletion& c : completions) out.emplace_back(c.id, c.status);
  return out;
}

// A region of its own at b, which a may reach.
struct Shared {
  Shared() : keys(world.b.nic.memory().add(world.b.bytes(0, 4096), kAll).value()) {
    std::tie(qa, qb) = world.connect({.mtu = 1024});
  }
  [[nodiscard]] bool reachable() {
    return world.b.nic.memory().covers(keys.rkey, world.b.at(0), 1, MemoryAccess::remote_write);
  }
  void write(std::uint64_t id) {
    const Segment from = world.a.segment(0, 8);
    world.a.post(*qa, {.id = id,
                       .segments = {&from, 1},
                       .remote_addr = world.b.at(0),
                       .rkey = keys.rkey,
                       .opcode = RequestOpcode::write});
  }
  void invalidate(std::uint64_t id, std::uint32_t key) {
    world.b.post(*qb, {.id = id, .rkey = key, .opcode = RequestOpcode::local_invalidate});
  }
  World world;
  MemoryKeys keys;
  RcQueuePair* qa = nullptr;
  RcQueuePair* qb = nullptr;
};

TEST(local_invalidate, key__is_refused_from_its_completion_on) {
  Shared s;
  s.write(1);
  ASSERT_TRUE(s.world.run());
  s.invalidate(2, s.keys.rkey);
  ASSERT_TRUE(s.world.run());
  const auto done = s.world.b.sends();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].opcode, CompletionOpcode::local_invalidate);
  EXPECT_EQ(done[0].status, Status::success);
  EXPECT_FALSE(s.reachable());
  s.write(3);
  ASSERT_TRUE(s.world.run());
  EXPECT_THAT(outcomes(s.world.a.sends()),
              ElementsAre(Pair(1, Status::success), Pair(3, Status::remote_access)));
  EXPECT_TRUE(s.world.at_rest());
}

TEST(local_invalidate, order__is_that_of_the_queue) {
  Shared s;
  const Segment into{s.world.b.at(0), 4096, s.keys.lkey};
  const Segment other = s.world.b.segment(8192, 64);
  s.world.b.post(*s.qb, {.id = 1,
                         .segments = {&into, 1},
                         .remote_addr = s.world.a.at(0),
                         .rkey = s.world.a.keys.rkey,
                         .opcode = RequestOpcode::read});
  s.invalidate(2, s.keys.lkey);
  s.world.b.post(*s.qb, {.id = 3,
                         .segments = {&other, 1},
                         .remote_addr = s.world.a.at(0),
                         .rkey = s.world.a.keys.rkey,
                         .opcode = RequestOpcode::write});
  s.world.run(microseconds{2});
  EXPECT_TRUE(s.reachable()) << "the READ into it is not complete";
  ASSERT_TRUE(s.world.run());
  EXPECT_THAT(outcomes(s.world.b.sends()),
              ElementsAre(Pair(1, Status::success), Pair(2, Status::success), Pair(3, Status::success)));
  EXPECT_FALSE(s.reachable());
  EXPECT_TRUE(s.world.at_rest());
}

TEST(local_invalidate, lost_packets_before_it__do_not_let_it_pass) {
  Shared s;
  int losses = 0;
  s.world.a.filter.lose = [&](const Frame&) { return losses++ < 3; };
  const Segment into{s.world.b.at(0), 4096, s.keys.lkey};
  s.world.b.post(*s.qb, {.id = 1,
                         .segments = {&into, 1},
                         .remote_addr = s.world.a.at(0),
                         .rkey = s.world.a.keys.rkey,
                         .opcode = RequestOpcode::read});
  s.invalidate(2, s.keys.rkey);
  s.invalidate(3, s.keys.rkey);
  ASSERT_TRUE(s.world.run());
  EXPECT_THAT(outcomes(s.world.b.sends()), ElementsAre(Pair(1, Status::success), Pair(2, Status::success),
                                                       Pair(3, Status::memory_management)));
}

TEST(local_invalidate, bad_key__fails_and_flushes_what_follows) {
  Shared s;
  s.invalidate(1, s.keys.rkey ^ 1U);
  s.invalidate(2, s.keys.rkey);
  ASSERT_TRUE(s.world.run());
  EXPECT_THAT(outcomes(s.world.b.sends()),
              ElementsAre(Pair(1, Status::memory_management), Pair(2, Status::flushed)));
  EXPECT_EQ(s.qb->state(), QpState::error);
  EXPECT_TRUE(s.reachable());
}

TEST(local_invalidate, drained_queue__leaves_it_for_later) {
  Shared s;
  ASSERT_TRUE(s.qb->modify({.state = QpState::sq_drain}, QpAttr::state));
  s.invalidate(1, s.keys.rkey);
  ASSERT_TRUE(s.world.run());
  EXPECT_TRUE(s.reachable());
  ASSERT_TRUE(s.qb->modify({.state = QpState::ready_to_send}, QpAttr::state));
  EXPECT_FALSE(s.reachable());
}

class SendWithInvalidate : public testing::TestWithParam<std::uint32_t> {};

TEST_P(SendWithInvalidate, key__ends_with_the_message_and_the_receive_names_it) {
  Shared s;
  const std::uint32_t length = GetParam();
  s.world.a.fill(0, length, 5);
  const Segment from = s.world.a.segment(0, length);
  s.world.b.receive_into(7, {s.world.b.segment(1 << 16, length)});
  s.world.a.post(*s.qa, {.id = 1,
                         .segments = {&from, 1},
                         .rkey = s.keys.rkey,
                         .opcode = RequestOpcode::send_with_inv,
                         .solicited = true});
  s.write(2);
  ASSERT_TRUE(s.world.run());
  EXPECT_THAT(outcomes(s.world.a.sends()),
              ElementsAre(Pair(1, Status::success), Pair(2, Status::remote_access)));
  const auto received = s.world.b.receives();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, Status::success);
  EXPECT_TRUE(received[0].has_inv);
  EXPECT_FALSE(received[0].has_imm);
  EXPECT_TRUE(received[0].solicited);
  EXPECT_EQ(received[0].imm, s.keys.rkey);
  EXPECT_EQ(received[0].byte_len, length);
  EXPECT_TRUE(std::ranges::equal(s.world.a.bytes(0, length), s.world.b.bytes(1 << 16, length)));
}
INSTANTIATE_TEST_SUITE_P(sizes, SendWithInvalidate, testing::Values(0, 1, 1023, 1024, 1025, 4096));

TEST(send_with_invalidate, lost_acknowledgement__does_not_invalidate_twice) {
  Shared s;
  int losses = 0;
  s.world.a.filter.lose = [&](const Frame& f) { return f.opcode == BthOpcode::acknowledge && losses++ == 0; };
  s.world.b.receive_into(7, {});
  s.world.a.post(*s.qa, {.id = 1, .rkey = s.keys.rkey, .opcode = RequestOpcode::send_with_inv});
  ASSERT_TRUE(s.world.run());
  EXPECT_EQ(s.world.b.nic.counters().packets_duplicate, 1U);
  EXPECT_THAT(outcomes(s.world.a.sends()), ElementsAre(Pair(1, Status::success)));
  EXPECT_THAT(outcomes(s.world.b.receives()), ElementsAre(Pair(7, Status::success)));
}

// rxe and IBA 1.4, 9.9.3 (class J): acknowledged, and an error of the end whose key it was.
TEST(send_with_invalidate, bad_key__fails_the_end_that_was_to_invalidate) {
  Shared s;
  s.world.b.receive_into(7, {});
  s.world.a.post(*s.qa, {.id = 1, .rkey = s.keys.lkey, .opcode = RequestOpcode::send_with_inv});
  ASSERT_TRUE(s.world.run());
  EXPECT_THAT(outcomes(s.world.a.sends()), ElementsAre(Pair(1, Status::success)));
  EXPECT_THAT(outcomes(s.world.b.receives()), ElementsAre(Pair(7, Status::remote_invalid_request)));
  EXPECT_EQ(s.qb->state(), QpState::error);
  EXPECT_EQ(s.qa->state(), QpState::ready_to_send);
  EXPECT_TRUE(s.reachable());
  EXPECT_TRUE(s.world.at_rest());
}

// --- Deregistration while an operation is under way.

TEST(deregistration, of_the_memory_a_read_fills__is_local_protection) {
  World world;
  const auto [qa, qb] = world.connect();
  const MemoryKeys keys = world.a.nic.memory().add(world.a.bytes(0, kLong), kAll).value();
  const Segment into{world.a.at(0), kLong, keys.lkey};
  world.a.post(*qa, {.id = 1,
                     .segments = {&into, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::read});
  world.a.post(*qa, {.id = 2, .opcode = RequestOpcode::write});
  world.run(microseconds{10});
  world.a.nic.memory().remove(keys);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()),
              ElementsAre(Pair(1, Status::local_protection), Pair(2, Status::flushed)));
  EXPECT_EQ(qb->state(), QpState::ready_to_send);
  EXPECT_TRUE(world.at_rest());
}

TEST(deregistration, of_a_receive_half_filled__is_local_protection_here_and_remote_operation_there) {
  World world;
  const auto [qa, qb] = world.connect();
  const MemoryKeys keys = world.b.nic.memory().add(world.b.bytes(0, kLong), kAll).value();
  world.b.receive_into(7, {Segment{world.b.at(0), kLong, keys.lkey}});
  const Segment from = world.a.segment(0, kLong);
  world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
  world.run(microseconds{10});
  world.b.nic.memory().remove(keys);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::remote_operation)));
  EXPECT_THAT(outcomes(world.b.receives()), ElementsAre(Pair(7, Status::local_protection)));
}

TEST(deregistration, before_a_retransmission__is_local_protection) {
  World world;
  const auto [qa, qb] = world.connect({.ack_timeout = 8});
  const MemoryKeys keys = world.a.nic.memory().add(world.a.bytes(0, 64), kAll).value();
  const Segment from{world.a.at(0), 64, keys.lkey};
  world.b.filter.lose = [](const Frame&) { return true; };
  world.write(*qa, {.id = 1, .from = from});
  world.run(microseconds{10});
  world.a.nic.memory().remove(keys);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::local_protection)));
  EXPECT_EQ(world.a.nic.counters().timeouts, 1U);
}

TEST(deregistration, before_a_duplicate_read__is_remote_access) {
  World world;
  const auto [qa, qb] = world.connect({.ack_timeout = 8});
  const MemoryKeys keys = world.b.nic.memory().add(world.b.bytes(0, 64), kAll).value();
  const Segment into = world.a.segment(0, 64);
  world.a.filter.lose = [](const Frame& f) { return f.opcode == BthOpcode::read_response_only; };
  world.a.post(*qa, {.id = 1,
                     .segments = {&into, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = keys.rkey,
                     .opcode = RequestOpcode::read});
  world.run(microseconds{10});
  world.b.nic.memory().remove(keys);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(outcomes(world.a.sends()), ElementsAre(Pair(1, Status::remote_access)));
}

}  // namespace
}  // namespace bx::sim
