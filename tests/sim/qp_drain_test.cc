// SPDX-License-Identifier: GPL-2.0-only
// What states do to traffic: SQD, attributes that change while a queue pair lives, access flags, and a
// receive queue of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libbx/base/rc_timing.h"
#include "tests/sim/nic_world.h"
#include "tests/sim/rc_fake.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using A = QpAttr;

tl::expected<void, QpRefusal> to_drain(RcQueuePair& qp, bool notify = true) {
  return qp.modify({.state = QpState::sq_drain, .en_sqd_async_notify = notify},
                   A::state | A::en_sqd_async_notify);
}
tl::expected<void, QpRefusal> to_send(RcQueuePair& qp) {
  return qp.modify({.state = QpState::ready_to_send}, A::state);
}
std::vector<std::uint32_t> psns(const std::vector<Frame>& frames) {
  std::vector<std::uint32_t> all;
  for (const Frame& frame : frames) all.push_back(frame.psn);
  return all;
}

TEST(sq_drain, sends__stop_at_a_message_boundary) {
  FakeRig rig({.mtu = 1024});
  rig.post(RequestOpcode::write, 3 * 1024, 1);
  rig.post(RequestOpcode::write, 1024, 2);
  Frame* first = rig.qp.requester().produce();
  rig.environment.pool.free(first);
  ASSERT_TRUE(to_drain(rig.qp));
  EXPECT_TRUE(rig.qp.query().sq_draining);
  rig.qp.on_doorbell();
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(1, 2)) << "the message that had begun, and no other";
  rig.hear_ack(1);
  EXPECT_THAT(rig.environment.raised, IsEmpty());
  EXPECT_EQ(to_send(rig.qp).error().fault, QpFault::draining);
  EXPECT_EQ(rig.qp.modify({.path = {.ack_timeout = 5}}, A::timeout).error().fault, QpFault::draining);
  rig.hear_ack(2);
  EXPECT_THAT(rig.environment.raised, ElementsAre(Pair(NicEventKind::sq_drained, rig.qp.number())));
  EXPECT_FALSE(rig.qp.query().sq_draining);
  EXPECT_THAT(rig.environment.pull(), IsEmpty());
  ASSERT_TRUE(to_send(rig.qp));
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(3)) << "resumed where it stopped";
}

TEST(sq_drain, lost_packets__are_retransmitted_while_it_drains) {
  FakeRig rig({.mtu = 1024, .ack_timeout = 1});
  rig.post(RequestOpcode::write, 2 * 1024, 1);
  (void)rig.environment.pull();
  ASSERT_TRUE(to_drain(rig.qp));
  rig.environment.time = rig.environment.timers.back().second;
  rig.qp.on_timer(RcTimer::ack);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(0, 1));
  rig.hear_ack(1);
  EXPECT_EQ(rig.environment.raised.size(), 1U);
  EXPECT_EQ(rig.completions().size(), 1U);
}

TEST(sq_drain, event__comes_at_once_when_nothing_is_under_way_and_only_if_asked_for) {
  FakeRig rig;
  ASSERT_TRUE(to_drain(rig.qp));
  EXPECT_EQ(rig.environment.raised.size(), 1U);
  ASSERT_TRUE(to_send(rig.qp));
  ASSERT_TRUE(rig.qp.modify({.state = QpState::sq_drain}, A::state));
  ASSERT_TRUE(to_send(rig.qp));
  ASSERT_TRUE(to_drain(rig.qp, false));
  EXPECT_EQ(rig.environment.raised.size(), 1U);
}

TEST(sq_drain, posts__wait_and_peers_are_served) {
  World world;
  const auto [qa, qb] = world.connect();
  ASSERT_TRUE(to_drain(*qa));
  const Segment at_a = world.a.segment(0, 100);
  const Segment at_b = world.b.segment(0, 100);
  world.write(*qa, {.id = 1, .from = at_a, .at = 512});
  world.b.post(*qb, {.id = 2,
                     .segments = {&at_b, 1},
                     .remote_addr = world.a.at(512),
                     .rkey = world.a.keys.rkey,
                     .opcode = RequestOpcode::read});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(world.a.sends(), IsEmpty());
  EXPECT_EQ(world.b.sends().size(), 1U);
  EXPECT_THAT(world.a.events, ElementsAre(Pair(NicEventKind::sq_drained, qa->number())));
  ASSERT_TRUE(to_send(*qa));
  world.a.nic.ring(*qa);
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.a.sends().size(), 1U);
  EXPECT_TRUE(world.at_rest());
}

TEST(sq_drain, error__flushes_what_waits) {
  FakeRig rig;
  ASSERT_TRUE(to_drain(rig.qp));
  rig.post(RequestOpcode::write, 8, 1);
  ASSERT_TRUE(rig.qp.modify({.state = QpState::error}, A::state));
  const auto all = rig.completions();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, CompletionStatus::flushed);
  EXPECT_THAT(rig.environment.raised, ElementsAre(Pair(NicEventKind::sq_drained, rig.qp.number()),
                                                  Pair(NicEventKind::last_wqe_reached, rig.qp.number())))
      << "drained is not said twice";
}

TEST(sq_drain, path__may_change_and_a_shorter_timeout_counts_at_once) {
  FakeRig rig({.mtu = 1024, .ack_timeout = 20});
  rig.post(RequestOpcode::write, 8, 1);
  (void)rig.environment.pull();
  rig.hear_ack(0);
  ASSERT_TRUE(to_drain(rig.qp));
  ASSERT_TRUE(rig.qp.modify(
      {.path = {.peer_host = 9, .ack_timeout = 3, .rd_atomic_dest_max = 2, .traffic_class = 0xa0}},
      A::av | A::timeout | A::max_dest_rd_atomic));
  ASSERT_TRUE(to_send(rig.qp));
  rig.post(RequestOpcode::write, 8, 2);
  const auto frames = rig.environment.pull();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].dst_host, 9U);
  EXPECT_EQ(frames[0].priority, 5U);
  EXPECT_EQ(rig.qp.requester().priority(), 5U);
  EXPECT_EQ(rig.qp.responder().priority(), 5U);
  EXPECT_EQ(rig.environment.timers.back().second, rig.environment.time + ack_wait(3));
}

TEST(sq_drain, saved_atomics__survive_a_change_of_their_number) {
  FakeRig rig({.rd_atomic_dest_max = 4});
  const auto ask = [&](std::uint32_t psn) {
    Frame frame;
    frame.opcode = BthOpcode::fetch_add;
    frame.psn = psn;
    frame.va = rig.at(0);
    frame.rkey = rig.keys.rkey;
    frame.swap_add = 1;
    rig.hear(frame);
  };
  for (std::uint32_t psn = 0; psn < 4; ++psn) ask(psn);
  EXPECT_EQ(rig.environment.pull().size(), 4U);
  ASSERT_TRUE(to_drain(rig.qp));
  ASSERT_TRUE(rig.qp.modify({.path = {.rd_atomic_dest_max = 3}}, A::max_dest_rd_atomic));
  for (std::uint32_t psn = 0; psn < 4; ++psn) ask(psn);
  std::vector<std::uint64_t> originals;
  for (const Frame& frame : rig.environment.pull()) originals.push_back(frame.atomic_original);
  EXPECT_THAT(originals, ElementsAre(1, 2, 3)) << "the latest three";
  ask(4);
  EXPECT_EQ(rig.environment.pull().at(0).atomic_original, 4U);
}

TEST(live_attributes, min_rnr_timer__changes_in_rts) {
  FakeRig rig({.min_rnr_timer = 12});
  ASSERT_TRUE(rig.qp.modify({.path = {.min_rnr_timer = 7}}, A::min_rnr_timer));
  Frame send;
  send.opcode = BthOpcode::send_only;
  rig.hear(send);
  const auto frames = rig.environment.pull();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].syndrome, kSyndromeRnrNak | 7U);
}

// IBA 1.4, 9.7.4.1.2: what the queue pair's flags rule out is an invalid request, whatever the key says.
TEST(access_flags, operations__they_rule_out_are_invalid_requests) {
  for (const auto& [opcode, right] : {std::pair{RequestOpcode::write, MemoryAccess::remote_write},
                                      std::pair{RequestOpcode::read, MemoryAccess::remote_read},
                                      std::pair{RequestOpcode::fetch_add, MemoryAccess::remote_atomic}}) {
    for (const bool allowed : {false, true}) {
      World world;
      const auto [qa, qb] = world.connect();
      const auto others = static_cast<MemoryAccess>(15U - static_cast<unsigned>(right));
      ASSERT_TRUE(qb->modify({.access = allowed ? right : others}, A::access_flags));
      const Segment segment = world.a.segment(0, 8);
      world.a.post(*qa, {.id = 1,
                         .segments = {&segment, 1},
                         .remote_addr = world.b.at(0),
                         .rkey = world.b.keys.rkey,
                         .opcode = opcode});
      ASSERT_TRUE(world.run());
      const auto sent = world.a.sends();
      ASSERT_EQ(sent.size(), 1U);
      EXPECT_EQ(sent[0].status,
                allowed ? CompletionStatus::success : CompletionStatus::remote_invalid_request);
      EXPECT_EQ(qb->state(), allowed ? QpState::ready_to_send : QpState::error);
    }
  }
}

class OwnReceives : public testing::Test {
 protected:
  OwnReceives()
      : qp(*world.b.nic
                .create_qp({.send_cq = &world.b.send_cq,
                            .receive_cq = &world.b.receive_cq,
                            .send = {16, 1, 0},
                            .receive = {4, 2}})
                .value()),
        peer(world.a.make_qp()) {}
  Result<std::size_t> post(std::uint64_t id) {
    const Segment segment = world.b.segment(id * 64, 64);
    const ReceiveRequest request{id, {&segment, 1}};
    return qp.post_receive({&request, 1});
  }
  std::vector<std::pair<std::uint64_t, CompletionStatus>> received() {
    std::vector<std::pair<std::uint64_t, CompletionStatus>> all;
    for (const WorkCompletion& c : world.b.receives()) all.emplace_back(c.id, c.status);
    return all;
  }
  World world;
  RcQueuePair& qp;
  RcQueuePair& peer;
};

TEST_F(OwnReceives, post__is_refused_in_reset_and_taken_from_init_on) {
  ASSERT_FALSE(post(1).has_value());
  EXPECT_EQ(post(1).error().sys, EINVAL);
  ASSERT_TRUE(qp.to_init());
  EXPECT_EQ(post(1), 1U);
  World::bring_up(peer, {.peer_host = 1, .peer_qp = qp.number()});
  ASSERT_TRUE(qp.to_ready_to_receive({.peer_host = 0, .peer_qp = peer.number()}));
  EXPECT_EQ(post(2), 1U);
  for (std::uint64_t id = 1; id <= 2; ++id) world.a.post(peer, {.id = id});
  ASSERT_TRUE(world.run());
  EXPECT_THAT(received(),
              ElementsAre(Pair(1, CompletionStatus::success), Pair(2, CompletionStatus::success)));
}

TEST_F(OwnReceives, post__takes_what_fits) {
  ASSERT_TRUE(qp.to_init());
  for (std::uint64_t id = 0; id < 4; ++id) EXPECT_EQ(post(id), 1U);
  EXPECT_EQ(post(4), 0U);
}

TEST_F(OwnReceives, error__flushes_them_in_order_and_later_ones_at_once) {
  ASSERT_TRUE(qp.to_init());
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(post(id), 1U);
  qp.to_error();
  ASSERT_EQ(post(4), 1U);
  ASSERT_TRUE(world.run());
  using enum CompletionStatus;
  EXPECT_THAT(received(),
              ElementsAre(Pair(1, flushed), Pair(2, flushed), Pair(3, flushed), Pair(4, flushed)));
}

TEST_F(OwnReceives, reset__forgets_them) {
  ASSERT_TRUE(qp.to_init());
  ASSERT_EQ(post(1), 1U);
  qp.to_reset();
  ASSERT_TRUE(qp.to_init());
  for (std::uint64_t id = 0; id < 4; ++id) EXPECT_EQ(post(id), 1U);
  qp.to_error();
  ASSERT_TRUE(world.run());
  EXPECT_EQ(received().size(), 4U);
}

TEST_F(OwnReceives, post__to_a_queue_pair_with_a_shared_queue_is_refused) {
  RcQueuePair& shared = world.b.make_qp();
  ASSERT_TRUE(shared.to_init());
  const ReceiveRequest request{1, {}};
  EXPECT_EQ(shared.post_receive({&request, 1}).error().sys, EINVAL);
}

}  // namespace
}  // namespace bx::sim
