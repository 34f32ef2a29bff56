// SPDX-License-Identifier: BSD-3-Clause
// Contract point 2: send completions of one queue pair arrive in post order; an unsignalled request is
// retired by the next signalled one, and its slot is free only when that completion has been polled.
#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

class Point2Order : public ContractTest {};
BX_CONFORMANCE_GROUP(Point2Order);

TEST_P(Point2Order, completions__arrive_in_post_order_whatever_the_opcode_and_size) {
  Rig rig(GetParam());
  rig.beta->post_recv(1000, 64, 0, 8);
  const Sge large = rig.alpha->sge(0, 100'000);
  const Sge small = rig.alpha->sge(0, 8);
  const auto there = rig.beta->remote(0);
  std::uint64_t id = 0;
  for (int round = 0; round < 4; ++round) {
    const std::array<SendWr, 4> mix{remote_wr(Opcode::rdma_write, id, {&large, 1}, there),
                                    send_wr(id + 1, {&small, 1}),
                                    remote_wr(Opcode::rdma_read, id + 2, {&large, 1}, there),
                                    remote_wr(Opcode::rdma_write_with_imm, id + 3, {&small, 1}, there)};
    ASSERT_EQ(rig.alpha->post(mix), 4U);
    id += 4;
  }
  const auto done = rig.wait_sends(*rig.alpha, 16);
  EXPECT_EQ(ids(done), numbers(0, 16));
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(16, WcStatus::success));
}

TEST_P(Point2Order, completions__say_what_was_carried_out) {
  Rig rig(GetParam());
  rig.beta->post_recv(1000, 4, 0, 8);
  const Sge word = rig.alpha->sge(0, 8);
  const auto there = rig.beta->remote(64);
  const std::array<SendWr, 5> all{send_wr(1, {&word, 1}), remote_wr(Opcode::send_with_imm, 2, {&word, 1}, {}),
                                  remote_wr(Opcode::rdma_write, 3, {&word, 1}, there),
                                  remote_wr(Opcode::rdma_write_with_imm, 4, {&word, 1}, there),
                                  remote_wr(Opcode::rdma_read, 5, {&word, 1}, there)};
  ASSERT_EQ(rig.alpha->post(all), all.size());
  const auto done = rig.wait_sends(*rig.alpha, all.size());
  ASSERT_EQ(ids(done), numbers(1, 5));
  EXPECT_EQ(done[0].opcode, WcOpcode::send);
  EXPECT_EQ(done[1].opcode, WcOpcode::send);
  EXPECT_EQ(done[2].opcode, WcOpcode::rdma_write);
  EXPECT_EQ(done[3].opcode, WcOpcode::rdma_write);
  EXPECT_EQ(done[4].opcode, WcOpcode::rdma_read);
  EXPECT_EQ(done[4].byte_len, 8U);
  for (const Completion& completion : done) EXPECT_EQ(completion.qp, rig.alpha->qp->address().qp);
  for (const Completion& completion : rig.wait_recvs(*rig.beta, 3)) {
    EXPECT_EQ(completion.qp, rig.beta->qp->address().qp);
  }
}

TEST_P(Point2Order, receives__are_consumed_in_post_order_by_messages_in_post_order) {
  Rig rig(GetParam());
  rig.beta->post_recv(500, 40, 0, 4);
  std::uint32_t sent = 0;
  std::vector<Completion> received;
  while (received.size() < 40) {
    for (; sent < 40; ++sent) {
      SendWr request = remote_wr(Opcode::send_with_imm, sent, {}, {});
      request.imm = 7000 + sent;
      if (rig.alpha->post(request) == 0) break;
    }
    ASSERT_FALSE(rig.wait_sends(*rig.alpha, 1).empty());
    for (const Completion& one : rig.beta->poll(*rig.beta->recv_cq)) received.push_back(one);
  }
  EXPECT_EQ(ids(received), numbers(500, 40));
  for (std::size_t i = 0; i < received.size(); ++i) EXPECT_EQ(received[i].imm, 7000 + i);
}

TEST_P(Point2Order, unsignaled__gives_no_completion_of_its_own) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 8);
  for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}, SendFlags::none));
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 4).size(), 4U);
  rig.run_for(5ms);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.alpha->post(send_wr(4, {}));
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 2, 5ms)), numbers(4, 1));
}

TEST_P(Point2Order, unsignaled__keeps_its_slot_until_a_signaled_completion_has_been_polled) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 64);
  for (std::uint64_t id = 0; id < 15; ++id) {
    ASSERT_EQ(rig.alpha->post(send_wr(id, {}, SendFlags::none)), 1U);
  }
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 15).size(), 15U);  // all carried out
  rig.run_for(5ms);
  ASSERT_EQ(rig.alpha->post(send_wr(15, {})), 1U);
  EXPECT_EQ(rig.alpha->post(send_wr(16, {})), 0U);
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 1).size(), 1U);
  rig.run_for(5ms);
  EXPECT_EQ(rig.alpha->post(send_wr(16, {})), 0U);  // the completion is there, but nobody polled it
  EXPECT_EQ(ids(rig.alpha->poll(*rig.alpha->send_cq)), numbers(15, 1));
  for (std::uint64_t id = 16; id < 32; ++id) EXPECT_EQ(rig.alpha->post(send_wr(id, {})), 1U);
  EXPECT_EQ(rig.alpha->post(send_wr(32, {})), 0U);
}

TEST_P(Point2Order, unsignaled__alone_never_frees_a_slot) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 32);
  for (std::uint64_t id = 0; id < 16; ++id) {
    ASSERT_EQ(rig.alpha->post(send_wr(id, {}, SendFlags::none)), 1U);
  }
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 16).size(), 16U);
  rig.run_for(5ms);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  EXPECT_EQ(rig.alpha->post(send_wr(16, {})), 0U);
}

TEST_P(Point2Order, slots__come_free_one_a_polled_completion) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 64);
  for (std::uint64_t id = 0; id < 16; ++id) ASSERT_EQ(rig.alpha->post(send_wr(id, {})), 1U);
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 16).size(), 16U);
  rig.run_for(5ms);
  EXPECT_EQ(rig.alpha->post(send_wr(16, {})), 0U);
  EXPECT_EQ(rig.alpha->poll(*rig.alpha->send_cq, 3).size(), 3U);
  for (std::uint64_t id = 16; id < 19; ++id) EXPECT_EQ(rig.alpha->post(send_wr(id, {})), 1U);
  EXPECT_EQ(rig.alpha->post(send_wr(19, {})), 0U);
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 16)), numbers(3, 16));
}

TEST_P(Point2Order, unsignaled__gives_a_completion_if_it_fails) {
  Rig rig(GetParam());
  const Sge word = rig.alpha->sge(0, 8);
  SendWr write = remote_wr(Opcode::rdma_write, 5, {&word, 1}, rig.beta->remote(0));
  write.remote.rkey = fabric::RKey{0x5555};
  write.flags = SendFlags::none;
  ASSERT_EQ(rig.alpha->post(write), 1U);
  const auto done = rig.wait_sends(*rig.alpha, 1);
  ASSERT_EQ(ids(done), numbers(5, 1));
  EXPECT_EQ(done[0].status, WcStatus::remote_access);
}

TEST_P(Point2Order, queue_pairs__on_one_completion_queue_each_keep_their_order) {
  Rig rig(GetParam());
  const auto second = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  Rig::connect(*rig.alpha, *second, *rig.beta, *peer);
  rig.beta->post_recv(1000, 64);
  for (std::uint64_t id = 0; id < 16; ++id) {
    const SendWr mine = send_wr(id, {});
    const SendWr theirs = send_wr(100 + id, {});
    ASSERT_EQ(rig.alpha->qp->post_send({&mine, 1}), 1U);
    ASSERT_EQ(second->post_send({&theirs, 1}), 1U);
  }
  std::vector<std::uint64_t> first_ids;
  std::vector<std::uint64_t> second_ids;
  for (const Completion& done : rig.wait_sends(*rig.alpha, 32)) {
    const bool is_first = done.qp == rig.alpha->qp->address().qp;
    (is_first ? first_ids : second_ids).push_back(static_cast<std::uint64_t>(done.wr_id));
  }
  EXPECT_EQ(first_ids, numbers(0, 16));
  EXPECT_EQ(second_ids, numbers(100, 16));
}

TEST_P(Point2Order, poll__returns_the_oldest_first_and_no_more_than_asked) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 16);
  for (std::uint64_t id = 0; id < 10; ++id) rig.alpha->post(send_wr(id, {}));
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 10).size(), 10U);
  rig.run_for(5ms);
  std::array<Completion, 4> out;
  EXPECT_EQ(rig.alpha->send_cq->poll(out), 4U);
  EXPECT_EQ(out[0].wr_id, WrId{0});
  EXPECT_EQ(out[3].wr_id, WrId{3});
  EXPECT_EQ(rig.alpha->send_cq->poll({}), 0U);
  EXPECT_EQ(ids(rig.alpha->poll(*rig.alpha->send_cq)), numbers(4, 6));
}

}  // namespace
}  // namespace bx::conformance
