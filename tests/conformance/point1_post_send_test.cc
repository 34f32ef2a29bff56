// SPDX-License-Identifier: BSD-3-Clause
// Contract point 1: post_send accepts a prefix and returns its length; it never blocks, allocates or throws.
// A short count is back-pressure and no error.
#include "tests/conformance/rig.h"
#include "tests/support/allocation_guard.h"

namespace bx::conformance {
namespace {

class Point1PostSend : public ContractTest {};
BX_CONFORMANCE_GROUP(Point1PostSend);

std::vector<SendWr> batch(std::uint64_t first, std::size_t count) {
  std::vector<SendWr> requests;
  for (std::size_t i = 0; i < count; ++i) requests.push_back(send_wr(first + i, {}));
  return requests;
}

TEST_P(Point1PostSend, post_send__accepts_all_when_there_is_room) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 16);
  EXPECT_EQ(rig.alpha->post(batch(0, 5)), 5U);
  EXPECT_EQ(rig.alpha->post(batch(5, 11)), 11U);
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 16)), numbers(0, 16));
}

TEST_P(Point1PostSend, post_send__accepts_a_prefix_of_a_batch_longer_than_the_queue) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 32);
  EXPECT_EQ(rig.alpha->post(batch(0, 19)), 16U);
  const auto done = rig.wait_sends(*rig.alpha, 17, 20ms);
  EXPECT_EQ(ids(done), numbers(0, 16));  // the prefix and nothing else
}

TEST_P(Point1PostSend, post_send__returns_zero_on_a_full_queue_without_an_error) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 64);
  ASSERT_EQ(rig.alpha->post(batch(0, 16)), 16U);
  EXPECT_EQ(rig.alpha->post(batch(50, 1)), 0U);
  EXPECT_EQ(rig.alpha->post(batch(50, 3)), 0U);
  const auto done = rig.wait_sends(*rig.alpha, 16);
  EXPECT_EQ(statuses(done), std::vector<WcStatus>(16, WcStatus::success));
  // Back-pressure was all it was: the queue pair goes on.
  EXPECT_EQ(rig.alpha->post(batch(200, 16)), 16U);
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 16)), numbers(200, 16));
}

TEST_P(Point1PostSend, post_send__accepts_the_rest_as_slots_come_free) {
  Rig rig(GetParam());
  rig.beta->post_recv(1000, 64);
  const auto all = batch(0, 50);
  std::size_t posted = 0;
  std::vector<std::uint64_t> seen;
  while (seen.size() < all.size()) {
    posted += rig.alpha->post(std::span(all).subspan(posted));
    const std::size_t expected = std::min<std::size_t>(3, all.size() - seen.size());
    const auto done = rig.wait_sends(*rig.alpha, expected);
    ASSERT_EQ(done.size(), expected);
    for (const std::uint64_t id : ids(done)) seen.push_back(id);
    ASSERT_LE(posted - seen.size(), 16U);
  }
  EXPECT_EQ(seen, numbers(0, 50));
}

TEST_P(Point1PostSend, post_send__of_nothing_returns_zero) {
  Rig rig(GetParam());
  EXPECT_EQ(rig.alpha->post(std::span<const SendWr>{}), 0U);
  rig.run_for(1ms);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
}

TEST_P(Point1PostSend, post_send__does_not_wait_for_the_network) {
  Rig rig(GetParam());
  rig.beta->post_recv(100, 16);
  const Instant before = rig.now();
  ASSERT_EQ(rig.alpha->post(batch(0, 16)), 16U);
  EXPECT_EQ(rig.alpha->post(batch(16, 1)), 0U);
  if (rig.clock == Clock::real) return;  // it may be done by now
  EXPECT_EQ(rig.now(), before);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
}

TEST_P(Point1PostSend, post_send__reads_the_elements_during_the_call_only) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 300, 1);
  rig.beta->post_recv(1, 1, 0, 1024);
  std::vector<Sge> sges{rig.alpha->sge(0, 100), rig.alpha->sge(100, 200)};
  ASSERT_EQ(rig.alpha->post(send_wr(1, sges)), 1U);
  sges.assign(2, Sge{});
  const auto received = rig.wait_recvs(*rig.beta, 1);
  ASSERT_EQ(statuses(received), std::vector{WcStatus::success});
  EXPECT_EQ(received[0].byte_len, 300U);
  EXPECT_TRUE(rig.beta->holds(0, 300, 1));
}

TEST_P(Point1PostSend, post_send__copies_an_inlined_payload_and_ignores_its_lkey) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 64, 1);
  rig.beta->post_recv(1, 1, 0, 64);
  Sge element = rig.alpha->sge(0, 64);
  element.lkey = fabric::LKey{0x12345678};
  ASSERT_EQ(rig.alpha->post(send_wr(1, {&element, 1}, SendFlags::signaled | SendFlags::inlined)), 1U);
  rig.alpha->fill(0, 64, 9);  // the buffer is free on return
  ASSERT_EQ(statuses(rig.wait_recvs(*rig.beta, 1)), std::vector{WcStatus::success});
  EXPECT_TRUE(rig.beta->holds(0, 64, 1));
}

TEST_P(Point1PostSend, post_send__inlines_a_write) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 33, 4);
  const Sge element = rig.alpha->sge(0, 33);
  SendWr write = remote_wr(Opcode::rdma_write, 1, {&element, 1}, rig.beta->remote(500));
  write.flags = SendFlags::signaled | SendFlags::inlined;
  ASSERT_EQ(rig.alpha->post(write), 1U);
  rig.alpha->fill(0, 33, 9);
  ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
  EXPECT_TRUE(rig.beta->holds(500, 33, 4));
}

TEST_P(Point1PostSend, post_recv__accepts_a_prefix_and_more_once_receives_are_consumed) {
  RigConfig config;
  config.srq_depth = 4;
  Rig rig(GetParam(), config);
  const std::vector<RecvWr> six{{.wr_id = WrId{0}}, {.wr_id = WrId{1}}, {.wr_id = WrId{2}},
                                {.wr_id = WrId{3}}, {.wr_id = WrId{4}}, {.wr_id = WrId{5}}};
  EXPECT_EQ(rig.beta->srq->post_recv(six), 4U);
  EXPECT_EQ(rig.beta->srq->post_recv(std::span(six).subspan(4)), 0U);
  ASSERT_EQ(rig.alpha->post(batch(0, 2)), 2U);
  EXPECT_EQ(ids(rig.wait_recvs(*rig.beta, 2)), numbers(0, 2));
  EXPECT_EQ(rig.beta->srq->post_recv(std::span(six).subspan(4)), 2U);
  ASSERT_EQ(rig.alpha->post(batch(2, 4)), 4U);
  EXPECT_EQ(ids(rig.wait_recvs(*rig.beta, 4)), numbers(2, 4));
}

TEST_P(Point1PostSend, post_send__and_the_other_calls_of_the_data_path_allocate_nothing) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 4096, 1);
  const Sge element = rig.alpha->sge(0, 4096);
  const Sge target = rig.beta->sge(0, 4096);
  const RecvWr receive{.wr_id = WrId{1}, .sges = {&target, 1}};
  const SendWr send = send_wr(1, {&element, 1});
  std::array<Completion, 4> out;
  std::uint64_t allocated = 0;
  for (int round = 0; round < 40; ++round) {
    const test::AllocationCount count;
    ASSERT_EQ(rig.beta->srq->post_recv({&receive, 1}), 1U);
    ASSERT_EQ(rig.alpha->qp->post_send({&send, 1}), 1U);
    allocated += count.since();
    ASSERT_TRUE(rig.run_until([&] { return rig.alpha->send_cq->arm() == ArmResult::pending; }));
    const test::AllocationCount count_polls;
    ASSERT_EQ(rig.alpha->send_cq->poll(out), 1U);
    ASSERT_EQ(rig.beta->recv_cq->poll(out), 1U);
    ASSERT_EQ(rig.alpha->send_cq->poll(out), 0U);
    ASSERT_EQ(rig.alpha->send_cq->arm(), ArmResult::armed);
    allocated += count_polls.since();
  }
  EXPECT_EQ(allocated, 0U);
}

using Point1PostSendDeathTest = Point1PostSend;
BX_CONFORMANCE_GROUP(Point1PostSendDeathTest);

TEST_P(Point1PostSendDeathTest, post_send__before_connect_is_a_programming_error) {
  Rig rig(GetParam());
  const auto qp = rig.alpha->make_qp();
  const SendWr request = send_wr(1, {});
  EXPECT_DEATH(qp->post_send({&request, 1}), "check failed");
}

TEST_P(Point1PostSendDeathTest, post_send__with_too_many_elements_is_a_programming_error) {
  Rig rig(GetParam());
  const std::vector<Sge> sges(5, rig.alpha->sge(0, 1));
  EXPECT_DEATH(rig.alpha->post(send_wr(1, sges)), "check failed");
}

TEST_P(Point1PostSendDeathTest, post_send__with_too_many_inline_bytes_is_a_programming_error) {
  Rig rig(GetParam());
  const Sge element = rig.alpha->sge(0, 65);
  EXPECT_DEATH(rig.alpha->post(send_wr(1, {&element, 1}, SendFlags::signaled | SendFlags::inlined)),
               "check failed");
}

}  // namespace
}  // namespace bx::conformance
