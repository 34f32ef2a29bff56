// SPDX-License-Identifier: BSD-3-Clause
// Contract point 5: after fail() or a fatal status every outstanding request completes exactly once as
// flushed, in order; then silence. Receives of a shared receive queue belong to that queue and survive.
#include <algorithm>

#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

class Point5Flush : public ContractTest {
 protected:
  static void expect_silence(Rig& rig) {
    rig.settle();
    EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
    EXPECT_TRUE(rig.alpha->poll(*rig.alpha->recv_cq).empty());
  }
};
BX_CONFORMANCE_GROUP(Point5Flush);

// Without a receive at beta and with RNR retries for ever, SENDs of alpha stay outstanding.
void post_stuck_sends(Rig& rig, std::uint64_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(rig.alpha->post(send_wr(first + i, {})), 1U);
}

TEST_P(Point5Flush, fail__flushes_everything_outstanding_once_and_in_order) {
  Rig rig(GetParam());
  post_stuck_sends(rig, 0, 10);
  rig.run_for(100us);
  ASSERT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.alpha->fail();
  const auto done = rig.wait_sends(*rig.alpha, 10);
  EXPECT_EQ(ids(done), numbers(0, 10));
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(10, WcStatus::flushed));
  for (const Completion& one : done) EXPECT_EQ(one.qp, rig.alpha->qp->address().qp);
  expect_silence(rig);
}

TEST_P(Point5Flush, fail__right_after_posting_flushes_too) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 16);
  post_stuck_sends(rig, 0, 16);
  rig.alpha->fail();
  auto done = rig.wait_sends(*rig.alpha, 16);
  EXPECT_EQ(ids(done), numbers(0, 16));
  if (rig.clock == Clock::real) {  // the first may have been carried out meanwhile
    const auto carried_out = [](const Completion& one) { return one.status == WcStatus::success; };
    done.erase(done.begin(), std::ranges::find_if_not(done, carried_out));
  }
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(done.size(), WcStatus::flushed));
  expect_silence(rig);
}

TEST_P(Point5Flush, fail__flushes_unsignaled_requests_as_well) {
  Rig rig(GetParam());
  for (std::uint64_t id = 0; id < 9; ++id) {
    rig.alpha->post(send_wr(id, {}, id % 3 == 2 ? SendFlags::signaled : SendFlags::none));
  }
  rig.alpha->fail();
  const auto done = rig.wait_sends(*rig.alpha, 9);
  EXPECT_EQ(ids(done), numbers(0, 9));
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(9, WcStatus::flushed));
  expect_silence(rig);
}

TEST_P(Point5Flush, fail__flushes_every_opcode_and_touches_no_memory_afterwards) {
  Rig rig(GetParam());
  const Sge bulk = rig.alpha->sge(0, 100'000);
  const auto there = rig.beta->remote(100'000);
  rig.alpha->post(send_wr(0, {}));  // stuck, and all behind it
  rig.alpha->post(remote_wr(Opcode::rdma_write, 1, {&bulk, 1}, there));
  rig.alpha->post(remote_wr(Opcode::rdma_read, 2, {&bulk, 1}, there));
  rig.alpha->post(remote_wr(Opcode::rdma_write_with_imm, 3, {&bulk, 1}, there));
  rig.run_for(50us);
  rig.alpha->fail();
  const auto done = rig.wait_sends(*rig.alpha, 4);
  EXPECT_EQ(ids(done), numbers(0, 4));
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(4, WcStatus::flushed));
  rig.alpha->fill(0, 100'000, 3);  // the flush gave the buffers back
  rig.beta->post_recv(1, 4);
  expect_silence(rig);
  EXPECT_TRUE(rig.alpha->holds(0, 100'000, 3));
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
}

TEST_P(Point5Flush, fail__twice_is_like_once) {
  Rig rig(GetParam());
  post_stuck_sends(rig, 0, 3);
  rig.alpha->fail();
  rig.alpha->fail();
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 4, 20ms)), numbers(0, 3));
  rig.alpha->fail();
  expect_silence(rig);
}

TEST_P(Point5Flush, fail__with_nothing_outstanding_is_silent) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 1);
  rig.alpha->post(send_wr(0, {}));
  ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  rig.alpha->fail();
  expect_silence(rig);
}

TEST_P(Point5Flush, fail__leaves_completions_that_were_queued_already) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 2);
  post_stuck_sends(rig, 0, 2);
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 2).size(), 2U);
  rig.run_for(100us);
  post_stuck_sends(rig, 2, 2);
  rig.run_for(100us);
  rig.alpha->fail();
  const auto done = rig.wait_sends(*rig.alpha, 4);
  EXPECT_EQ(ids(done), numbers(0, 4));
  EXPECT_EQ(statuses(done),
            (std::vector{WcStatus::success, WcStatus::success, WcStatus::flushed, WcStatus::flushed}));
}

TEST_P(Point5Flush, post_send__on_a_failed_queue_pair_is_flushed_once_and_in_order) {
  Rig rig(GetParam());
  post_stuck_sends(rig, 0, 2);
  rig.alpha->fail();
  post_stuck_sends(rig, 2, 5);
  const auto done = rig.wait_sends(*rig.alpha, 7);
  EXPECT_EQ(ids(done), numbers(0, 7));
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(7, WcStatus::flushed));
  post_stuck_sends(rig, 7, 16);  // polled flushes have freed their slots
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 16)), numbers(7, 16));
  expect_silence(rig);
}

TEST_P(Point5Flush, post_send__on_a_failed_queue_pair_still_accepts_a_prefix_only) {
  Rig rig(GetParam());
  rig.alpha->fail();
  const std::vector<SendWr> many(20, send_wr(1, {}));
  EXPECT_EQ(rig.alpha->post(many), 16U);
  EXPECT_EQ(rig.alpha->post(many), 0U);
  EXPECT_EQ(rig.wait_sends(*rig.alpha, 17, 20ms).size(), 16U);
}

TEST_P(Point5Flush, fatal_status__flushes_what_is_behind_it_in_order) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 16);
  const Sge word = rig.alpha->sge(0, 8);
  SendWr bad = remote_wr(Opcode::rdma_write, 3, {&word, 1}, rig.beta->remote(0));
  bad.remote.rkey = fabric::RKey{0x77777777};
  post_stuck_sends(rig, 0, 3);
  rig.alpha->post(bad);
  for (std::uint64_t id = 4; id < 12; ++id) {
    rig.alpha->post(send_wr(id, {}, id % 2 == 0 ? SendFlags::none : SendFlags::signaled));
  }
  const auto done = rig.wait_sends(*rig.alpha, 12);
  EXPECT_EQ(ids(done), numbers(0, 12));
  std::vector<WcStatus> expected(12, WcStatus::flushed);
  expected[0] = expected[1] = expected[2] = WcStatus::success;
  expected[3] = WcStatus::remote_access;
  EXPECT_EQ(statuses(done), expected);
  expect_silence(rig);
  EXPECT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 3U);
}

TEST_P(Point5Flush, connect__of_a_failed_queue_pair_is_refused) {
  Rig rig(GetParam());
  const auto qp = rig.alpha->make_qp();
  qp->fail();
  const auto connected = qp->connect(rig.beta->qp->address(), rig.alpha->config.path);
  ASSERT_FALSE(connected.has_value());
  EXPECT_EQ(connected.error().code, ErrorCode::device);
}

TEST_P(Point5Flush, srq__keeps_its_receives_when_a_queue_pair_fails) {
  Rig rig(GetParam());
  const auto second = rig.beta->make_qp();
  const auto peer = rig.alpha->make_qp();
  Rig::connect(*rig.alpha, *peer, *rig.beta, *second);
  rig.beta->post_recv(0, 10);
  rig.alpha->post(send_wr(0, {}));
  ASSERT_EQ(ids(rig.wait_recvs(*rig.beta, 1)), numbers(0, 1));
  rig.beta->fail();
  rig.run_for(20ms);
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());  // not one receive was flushed
  for (std::uint64_t id = 0; id < 9; ++id) {
    const SendWr request = send_wr(id, {});
    ASSERT_EQ(peer->post_send({&request, 1}), 1U);
  }
  const auto received = rig.wait_recvs(*rig.beta, 9);
  EXPECT_EQ(ids(received), numbers(1, 9));
  EXPECT_EQ(statuses(received), std::vector<WcStatus>(9, WcStatus::success));
}

TEST_P(Point5Flush, fail__of_one_queue_pair_leaves_the_others_alone) {
  Rig rig(GetParam());
  const auto second = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  Rig::connect(*rig.alpha, *second, *rig.beta, *peer);
  post_stuck_sends(rig, 0, 4);
  const SendWr request = send_wr(50, {});
  ASSERT_EQ(second->post_send({&request, 1}), 1U);
  rig.alpha->fail();
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 4)), numbers(0, 4));
  rig.beta->post_recv(9);
  const auto done = rig.wait_sends(*rig.alpha, 1);
  ASSERT_EQ(ids(done), numbers(50, 1));
  EXPECT_EQ(done[0].status, WcStatus::success);
}

}  // namespace
}  // namespace bx::conformance
