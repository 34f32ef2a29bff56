// SPDX-License-Identifier: BSD-3-Clause
// Contract point 4: payload is visible before the completion that announces it. WRITE_WITH_IMM consumes one
// receive.
#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

class Point4Visibility : public ContractTest {};
BX_CONFORMANCE_GROUP(Point4Visibility);

// Lengths on both sides of the rig's MTU of 1024, and a long one.
constexpr std::array<std::size_t, 6> kLengths{1, 100, 1024, 1025, 10'000, 200'000};

TEST_P(Point4Visibility, send__payload_is_there_when_its_receive_completes) {
  Rig rig(GetParam());
  for (const std::size_t length : kLengths) {
    rig.alpha->fill(0, length, 3);
    rig.beta->fill(0, length, 99);
    rig.beta->post_recv(1, 1, 0, length);
    const Sge element = rig.alpha->sge(0, length);
    rig.alpha->post(send_wr(1, {&element, 1}));
    const auto received = rig.wait_recvs(*rig.beta, 1);
    ASSERT_EQ(statuses(received), std::vector{WcStatus::success}) << length;
    EXPECT_EQ(received[0].byte_len, length);
    EXPECT_TRUE(rig.beta->holds(0, length, 3)) << length;
    EXPECT_FALSE(received[0].has_imm);
    EXPECT_EQ(received[0].opcode, WcOpcode::recv);
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
}

TEST_P(Point4Visibility, send_with_imm__carries_the_immediate) {
  Rig rig(GetParam());
  rig.beta->post_recv(1, 1, 0, 64);
  rig.alpha->fill(0, 64, 2);
  const Sge element = rig.alpha->sge(0, 64);
  SendWr request = remote_wr(Opcode::send_with_imm, 1, {&element, 1}, {});
  request.imm = 0xfedcba98;
  rig.alpha->post(request);
  const auto received = rig.wait_recvs(*rig.beta, 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_TRUE(received[0].has_imm);
  EXPECT_EQ(received[0].imm, 0xfedcba98U);
  EXPECT_EQ(received[0].opcode, WcOpcode::recv);
  EXPECT_TRUE(rig.beta->holds(0, 64, 2));
}

TEST_P(Point4Visibility, send_with_imm__tells_its_sender_of_none) {
  Rig rig(GetParam());
  rig.beta->post_recv(1, 2);
  for (const Opcode opcode : {Opcode::send_with_imm, Opcode::rdma_write_with_imm}) {
    SendWr request = remote_wr(opcode, 1, {}, rig.beta->remote(0));
    request.imm = 0xfedcba98;
    rig.alpha->post(request);
    const auto sent = rig.wait_sends(*rig.alpha, 1);
    ASSERT_EQ(statuses(sent), std::vector{WcStatus::success});
    EXPECT_FALSE(sent[0].has_imm);
    EXPECT_EQ(sent[0].imm, 0U);
  }
}

TEST_P(Point4Visibility, write_with_imm__announces_its_payload_and_consumes_one_receive) {
  Rig rig(GetParam());
  rig.beta->post_recv(10, 3, 0, 16);  // their buffers are not used
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::size_t length = kLengths[2 + i];
    rig.alpha->fill(0, length, static_cast<std::uint8_t>(i));
    const Sge element = rig.alpha->sge(0, length);
    SendWr request = remote_wr(Opcode::rdma_write_with_imm, i, {&element, 1}, rig.beta->remote(4096));
    request.imm = 500 + i;
    rig.alpha->post(request);
    const auto received = rig.wait_recvs(*rig.beta, 1);
    ASSERT_EQ(ids(received), numbers(10 + i, 1));
    EXPECT_EQ(received[0].status, WcStatus::success);
    EXPECT_EQ(received[0].opcode, WcOpcode::recv_rdma_with_imm);
    EXPECT_TRUE(received[0].has_imm);
    EXPECT_EQ(received[0].imm, 500 + i);
    EXPECT_EQ(received[0].byte_len, length);
    EXPECT_TRUE(rig.beta->holds(4096, length, static_cast<std::uint8_t>(i)));
    EXPECT_EQ(rig.beta->memory[0], std::byte{0});
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
}

TEST_P(Point4Visibility, write__consumes_no_receive_and_completes_at_the_requester_only) {
  Rig rig(GetParam());
  rig.beta->post_recv(10, 1, 0, 16);
  rig.alpha->fill(0, 5000, 6);
  const Sge element = rig.alpha->sge(0, 5000);
  rig.alpha->post(remote_wr(Opcode::rdma_write, 1, {&element, 1}, rig.beta->remote(300)));
  ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
  EXPECT_TRUE(rig.beta->holds(300, 5000, 6));
  rig.run_for(5ms);
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
  rig.alpha->post(send_wr(2, {}));
  EXPECT_EQ(ids(rig.wait_recvs(*rig.beta, 1)), numbers(10, 1));  // still the first receive
}

TEST_P(Point4Visibility, write__is_there_before_the_send_behind_it_is_announced) {
  Rig rig(GetParam());
  for (const std::size_t length : kLengths) {
    rig.alpha->fill(0, length, 8);
    rig.beta->fill(1000, length, 77);
    rig.beta->post_recv(1);
    const Sge element = rig.alpha->sge(0, length);
    SendWr write = remote_wr(Opcode::rdma_write, 1, {&element, 1}, rig.beta->remote(1000));
    write.flags = SendFlags::none;
    const std::array<SendWr, 2> both{write, send_wr(2, {})};
    ASSERT_EQ(rig.alpha->post(both), 2U);
    ASSERT_EQ(rig.wait_recvs(*rig.beta, 1).size(), 1U);
    EXPECT_TRUE(rig.beta->holds(1000, length, 8)) << length;
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
}

TEST_P(Point4Visibility, read__data_is_there_when_it_completes) {
  Rig rig(GetParam());
  for (const std::size_t length : kLengths) {
    rig.beta->fill(50, length, 4);
    rig.alpha->fill(0, length, 55);
    const Sge element = rig.alpha->sge(0, length);
    rig.alpha->post(remote_wr(Opcode::rdma_read, 1, {&element, 1}, rig.beta->remote(50)));
    const auto done = rig.wait_sends(*rig.alpha, 1);
    ASSERT_EQ(statuses(done), std::vector{WcStatus::success}) << length;
    EXPECT_EQ(done[0].byte_len, length);
    EXPECT_TRUE(rig.alpha->holds(0, length, 4)) << length;
  }
}

TEST_P(Point4Visibility, read__sees_what_an_earlier_write_of_the_same_queue_pair_left) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 3000, 5);
  const Sge from = rig.alpha->sge(0, 3000);
  const Sge into = rig.alpha->sge(8192, 3000);
  const std::array<SendWr, 2> both{remote_wr(Opcode::rdma_write, 1, {&from, 1}, rig.beta->remote(0)),
                                   remote_wr(Opcode::rdma_read, 2, {&into, 1}, rig.beta->remote(0))};
  ASSERT_EQ(rig.alpha->post(both), 2U);
  ASSERT_EQ(rig.wait_sends(*rig.alpha, 2).size(), 2U);
  EXPECT_TRUE(rig.alpha->holds(8192, 3000, 5));
}

TEST_P(Point4Visibility, fence__holds_a_send_until_the_read_before_it_is_complete) {
  Rig rig(GetParam());
  for (const std::size_t length : kLengths) {
    rig.beta->fill(0, length, 11);
    rig.alpha->fill(0, length, 44);
    rig.beta->post_recv(1, 1, 50'000, length);
    const Sge element = rig.alpha->sge(0, length);
    const std::array<SendWr, 2> both{remote_wr(Opcode::rdma_read, 1, {&element, 1}, rig.beta->remote(0)),
                                     send_wr(2, {&element, 1}, SendFlags::signaled | SendFlags::fenced)};
    ASSERT_EQ(rig.alpha->post(both), 2U);
    ASSERT_EQ(rig.wait_recvs(*rig.beta, 1).size(), 1U);
    EXPECT_TRUE(rig.beta->holds(50'000, length, 11)) << length;
    ASSERT_EQ(ids(rig.wait_sends(*rig.alpha, 2)), numbers(1, 2));
  }
}

TEST_P(Point4Visibility, messages__of_many_sizes_all_arrive_as_sent) {
  Rig rig(GetParam());
  Prng prng(42);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::size_t length = prng.between(1, 8000);
    const auto seed = static_cast<std::uint8_t>(i);
    rig.alpha->fill(0, length, seed);
    rig.beta->post_recv(i, 1, 0, 8000);
    const Sge element = rig.alpha->sge(0, length);
    ASSERT_EQ(rig.alpha->post(send_wr(i, {&element, 1})), 1U);
    const auto received = rig.wait_recvs(*rig.beta, 1);
    ASSERT_EQ(ids(received), numbers(i, 1));
    EXPECT_EQ(received[0].byte_len, length);
    EXPECT_TRUE(rig.beta->holds(0, length, seed));
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
}

}  // namespace
}  // namespace bx::conformance
