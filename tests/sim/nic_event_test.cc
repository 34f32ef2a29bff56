// SPDX-License-Identifier: GPL-2.0-only
// Asynchronous events of the NIC that tests of single parts do not show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

void send(Side& side, RcQueuePair& qp, std::uint64_t id) {
  side.post(qp, {.id = id});
}

TEST(srq_limit, event__comes_once_when_fewer_are_left_and_disarms) {
  World world;
  const auto [qa, qb] = world.connect();
  for (std::uint64_t id = 0; id < 4; ++id) world.b.receive_into(id, {});
  ASSERT_TRUE(world.b.srq.set_limit(3));
  send(world.a, *qa, 1);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(world.b.events, IsEmpty()) << "three are left, which is not fewer";
  send(world.a, *qa, 2);
  send(world.a, *qa, 3);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(world.b.events, ElementsAre(Pair(NicEventKind::srq_limit_reached, world.b.srq.number())));
  EXPECT_EQ(world.b.srq.limit(), 0U);
}

TEST(srq_limit, set_limit__fires_at_once_when_fewer_are_there_and_can_be_armed_again) {
  World world;
  world.b.receive_into(1, {});
  ASSERT_TRUE(world.b.srq.set_limit(1));
  ASSERT_TRUE(world.run());
  EXPECT_THAT(world.b.events, IsEmpty());
  ASSERT_TRUE(world.b.srq.set_limit(2));
  ASSERT_TRUE(world.b.srq.set_limit(2));
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.b.events.size(), 2U);
  ASSERT_TRUE(world.b.srq.set_limit(0));
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.b.events.size(), 2U);
  EXPECT_EQ(world.b.srq.set_limit(257).error().sys, EINVAL) << "above the depth";
}

TEST(communication_established, event__comes_with_the_first_packet_in_rtr_and_not_in_rts) {
  World world;
  RcQueuePair& qa = world.a.make_qp();
  RcQueuePair& qb = world.b.make_qp();
  World::bring_up(qa, {.peer_host = 1, .peer_qp = qb.number()});
  ASSERT_TRUE(qb.to_init());
  ASSERT_TRUE(qb.to_ready_to_receive({.peer_host = 0, .peer_qp = qa.number()}));
  for (std::uint64_t id = 0; id < 3; ++id) world.b.receive_into(id, {});
  send(world.a, qa, 1);
  send(world.a, qa, 2);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(world.b.events, ElementsAre(Pair(NicEventKind::communication_established, qb.number())));
  ASSERT_TRUE(qb.to_ready_to_send());
  send(world.a, qa, 3);
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.b.events.size(), 1U);
  EXPECT_THAT(world.a.events, IsEmpty());
}

TEST(last_wqe_reached, event__follows_the_last_receive_and_only_with_a_shared_queue) {
  World world;
  const auto [qa, qb] = world.connect({.mtu = 1024});
  const Segment from = world.a.segment(0, 4096);
  world.b.receive_into(7, {world.b.segment(0, 4096)});
  world.b.filter.lose = [](const Frame& f) { return f.opcode == BthOpcode::send_last; };
  world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
  world.run(microseconds{10});
  qb->to_error();
  EXPECT_THAT(world.b.events, IsEmpty()) << "events come from an engine event of their own";
  world.run(microseconds{20});
  EXPECT_THAT(world.b.events, ElementsAre(Pair(NicEventKind::last_wqe_reached, qb->number())));
  const auto received = world.b.receives();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, CompletionStatus::flushed);
  RcQueuePair& own = *world.b.nic
                          .create_qp({.send_cq = &world.b.send_cq,
                                      .receive_cq = &world.b.receive_cq,
                                      .send = {1, 1, 0},
                                      .receive = {1, 1}})
                          .value();
  own.to_error();
  world.run(microseconds{30});
  EXPECT_EQ(world.b.events.size(), 1U);
}

TEST(port_event, link__that_is_cut_and_mended_is_told) {
  World world;
  world.a.nic.port().set_link(LinkState::down);
  world.a.nic.port().set_link(LinkState::down);
  world.a.nic.port().set_link(LinkState::up);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(world.a.events,
              ElementsAre(Pair(NicEventKind::port_error, 1), Pair(NicEventKind::port_active, 1)));
  EXPECT_THAT(world.b.events, IsEmpty()) << "only the direction from a was cut";
}

TEST(reset_device, every_queue_pair__fails_in_silence_and_new_ones_work) {
  World world;
  const auto [qa1, qb1] = world.connect({.ack_timeout = 8, .retry_cnt = 1});
  const auto [qa2, qb2] = world.connect({.ack_timeout = 8, .retry_cnt = 1});
  const Segment from = world.a.segment(0, 65536);
  for (RcQueuePair* qp : {qa1, qa2}) {
    world.a.post(*qp, {.id = 1,
                       .segments = {&from, 1},
                       .remote_addr = world.b.at(0),
                       .rkey = world.b.keys.rkey,
                       .opcode = RequestOpcode::read});
  }
  world.run(microseconds{4});
  world.b.nic.reset_device();
  const std::uint64_t sent = world.b.nic.counters().packets_tx;
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.b.nic.counters().packets_tx, sent);
  EXPECT_THAT(world.b.events, ElementsAre(Pair(NicEventKind::device_fatal, 0),
                                          Pair(NicEventKind::last_wqe_reached, qb1->number()),
                                          Pair(NicEventKind::last_wqe_reached, qb2->number())));
  EXPECT_EQ(qb1->state(), QpState::error);
  const auto failed = world.a.sends();
  ASSERT_EQ(failed.size(), 2U);
  EXPECT_EQ(failed[0].status, CompletionStatus::retry_exceeded);
  const auto [qa3, qb3] = world.connect();
  world.a.post(*qa3, {.id = 3, .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.a.sends().size(), 1U);
  EXPECT_TRUE(world.at_rest());
}

}  // namespace
}  // namespace bx::sim
