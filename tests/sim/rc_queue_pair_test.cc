// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/rc_queue_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

enum class Move { to_init, to_ready_to_receive, to_ready_to_send, to_error, to_reset };
constexpr std::array kMoves{Move::to_init, Move::to_ready_to_receive, Move::to_ready_to_send, Move::to_error,
                            Move::to_reset};
constexpr RcPath kPath{.peer_host = 1, .peer_qp = 2};

bool make(RcQueuePair& qp, Move move) {
  switch (move) {
    case Move::to_init:
      return qp.to_init().has_value();
    case Move::to_ready_to_receive:
      return qp.to_ready_to_receive(kPath).has_value();
    case Move::to_ready_to_send:
      return qp.to_ready_to_send().has_value();
    case Move::to_error:
      qp.to_error();
      return true;
    case Move::to_reset:
      qp.to_reset();
      return true;
  }
  return false;
}

// IBA 1.4, 10.3.1, figure 124, without SQD and SQE: a row is a state, a column a transition, an entry the
// state after it. What is not allowed changes nothing.
struct Row {
  QpState from;
  std::array<QpState, kMoves.size()> after;  // in the order of kMoves
};
using S = QpState;
constexpr std::array kTable{
    Row{S::reset, {S::init, S::reset, S::reset, S::error, S::reset}},
    Row{S::init, {S::init, S::ready_to_receive, S::init, S::error, S::reset}},
    Row{S::ready_to_receive,
        {S::ready_to_receive, S::ready_to_receive, S::ready_to_send, S::error, S::reset}},
    Row{S::ready_to_send, {S::ready_to_send, S::ready_to_send, S::ready_to_send, S::error, S::reset}},
    Row{S::error, {S::error, S::error, S::error, S::error, S::reset}},
};

void bring_to(RcQueuePair& qp, QpState state) {
  if (state == S::reset) return;
  if (state == S::error) return qp.to_error();
  for (std::size_t i = 0; qp.state() != state; ++i) ASSERT_TRUE(make(qp, kMoves[i]));
}

TEST(rc_queue_pair, transitions__are_those_of_the_table) {
  World world;
  for (const Row& row : kTable) {
    for (std::size_t i = 0; i < kMoves.size(); ++i) {
      RcQueuePair& qp = world.a.make_qp();
      bring_to(qp, row.from);
      const bool made = make(qp, kMoves[i]);
      EXPECT_EQ(qp.state(), row.after[i]) << static_cast<int>(row.from) << " by " << i;
      const bool is_legal =
          row.after[i] != row.from || kMoves[i] == Move::to_error || kMoves[i] == Move::to_reset ||
          (row.from == S::init && kMoves[i] == Move::to_init);  // INIT -> INIT changes attributes
      EXPECT_EQ(made, is_legal);
      world.a.nic.destroy(qp);
    }
  }
}

TEST(rc_queue_pair, to_ready_to_receive__refuses_attributes_out_of_range) {
  World world;
  RcQueuePair& qp = world.a.make_qp();
  ASSERT_TRUE(qp.to_init());
  const std::vector<std::function<void(RcPath&)>> faults{
      [](RcPath& p) { p.mtu = 128; },
      [](RcPath& p) { p.mtu = 1500; },
      [](RcPath& p) { p.mtu = 8192; },
      [](RcPath& p) { p.ack_timeout = 32; },
      [](RcPath& p) { p.retry_cnt = 8; },
      [](RcPath& p) { p.rnr_retry = 8; },
      [](RcPath& p) { p.min_rnr_timer = 32; },
      [](RcPath& p) { p.rd_atomic_max = 129; },
      [](RcPath& p) { p.rd_atomic_dest_max = 129; },
      [](RcPath& p) { p.send_psn = 1U << 24U; },
      [](RcPath& p) { p.receive_psn = 1U << 24U; },
      [](RcPath& p) { p.peer_qp = 1U << 24U; },
  };
  for (const auto& spoil : faults) {
    RcPath path = kPath;
    spoil(path);
    const Result<> result = qp.to_ready_to_receive(path);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(qp.state(), QpState::init);
  }
  EXPECT_TRUE(qp.to_ready_to_receive(kPath));
}

TEST(rc_queue_pair, post_send__is_refused_before_rts) {
  World world;
  const SendRequest request{.id = 1};
  for (const QpState state : {QpState::reset, QpState::init, QpState::ready_to_receive}) {
    RcQueuePair& qp = world.a.make_qp();
    bring_to(qp, state);
    const Result<std::size_t> posted = qp.post_send({&request, 1});
    ASSERT_FALSE(posted.has_value());
    EXPECT_EQ(posted.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(posted.error().sys, EINVAL);
    EXPECT_EQ(qp.requester().outstanding(), 0U);
  }
  RcQueuePair& failed = world.a.make_qp();
  failed.to_error();
  EXPECT_EQ(failed.post_send({&request, 1}), 1U);
}

TEST(rc_queue_pair, receive__listens_from_rtr_on_and_to_its_peer_only) {
  World world;
  const auto [qa, qb] = world.connect();
  const Segment from = world.a.segment(0, 8);
  // A packet for b's queue pair from a host that is not its peer.
  Frame* stray = world.frames.make();
  stray->opcode = BthOpcode::send_only;
  stray->dst_qp = qb->number();
  stray->src_host = 5;
  world.b.nic.accept(stray);
  EXPECT_EQ(world.b.nic.counters().packets_discarded, 1U);
  world.b.receive_into(1, {world.b.segment(0, 8)});
  world.a.post(*qa, {.id = 1, .segments = {&from, 1}});
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.b.receives().size(), 1U);
}

TEST(rc_queue_pair, rtr__answers_before_it_may_send) {
  World world;
  RcQueuePair& qa = world.a.make_qp();
  RcQueuePair& qb = world.b.make_qp();
  World::bring_up(qa, {.peer_host = 1, .peer_qp = qb.number()});
  ASSERT_TRUE(qb.to_init());
  ASSERT_TRUE(qb.to_ready_to_receive({.peer_host = 0, .peer_qp = qa.number()}));
  world.a.post(qa, {.id = 1, .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  const auto sent = world.a.sends();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].status, CompletionStatus::success);
}

TEST(rc_queue_pair, source_port__spreads_queue_pairs_and_is_stable_for_one) {
  World world;
  std::vector<std::uint16_t> ports;
  world.b.filter.lose = [&](const Frame& f) {
    ports.push_back(f.udp_src_port);
    return false;
  };
  for (int i = 0; i < 8; ++i) {
    const auto [qa, qb] = world.connect();
    world.a.post(*qa, {.id = 1, .opcode = RequestOpcode::write});
    world.a.post(*qa, {.id = 2, .opcode = RequestOpcode::write});
  }
  ASSERT_TRUE(world.run());
  ASSERT_EQ(ports.size(), 16U);
  std::ranges::sort(ports);
  std::size_t different = 1;
  for (std::size_t i = 1; i < ports.size(); ++i) different += ports[i] != ports[i - 1] ? 1 : 0;
  EXPECT_GE(ports.front(), 0xc000);
  EXPECT_GE(different, 7U);
  EXPECT_LE(different, 8U);
}

}  // namespace
}  // namespace bx::sim
