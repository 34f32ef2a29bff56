// SPDX-License-Identifier: BSD-3-Clause
// What the conformance suite does not ask of every provider: exact times, doorbells inside turns, and what
// happens to a buffer that is reused too early. Also of loopback_responder.cc and loopback_queues.cc.
#include "libbx/providers/loopback/loopback_queue_pair.h"

#include <gtest/gtest.h>

#include "libbx/base/rc_timing.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/rig.h"

namespace bx::loopback {
namespace {

using namespace std::chrono_literals;
using conformance::Endpoint;
using conformance::remote_wr;
using conformance::Rig;
using conformance::RigConfig;
using conformance::send_wr;
using conformance::statuses;
using fabric::ArmResult;
using fabric::Completion;
using fabric::Opcode;
using fabric::SendFlags;
using fabric::SendWr;
using fabric::Sge;
using fabric::WcStatus;

// 1 us latency, one byte a nanosecond; a turn costs 100 ns and a handler 5000 ns.
LoopbackConfig timing() {
  LoopbackConfig config;
  config.latency = 1us;
  config.bytes_per_second = 1'000'000'000;
  config.cpu = {};
  config.cpu.turn = Duration{100};
  config.cpu.handler = Duration{5'000};
  config.cpu.wake_polled = Duration{0};
  return config;
}

class LoopbackQpTest : public testing::Test {
 protected:
  explicit LoopbackQpTest(const RigConfig& config = {})
      : rig(std::make_unique<LoopbackFabric>(timing()), {"alpha", "beta"}, config) {}
  // Runs to the nanosecond at which the queue has a completion; returns the time since `begin`.
  Duration until(fabric::CompletionQueue& cq, Instant begin) {
    Instant limit = rig.now();
    while (cq.arm() == ArmResult::armed && limit < begin + 10ms) {
      rig.alpha->host->reactor().run(++limit);
    }
    return rig.now() - begin;
  }
  Rig rig;
};

TEST_F(LoopbackQpTest, send__takes_serialisation_and_latency_and_its_completion_one_latency_more) {
  rig.beta->post_recv(1, 1, 0, 4000);
  const Sge element = rig.alpha->sge(0, 4000);
  const Instant begin = rig.now();
  rig.alpha->post(send_wr(1, {&element, 1}));
  EXPECT_EQ(until(*rig.beta->recv_cq, begin), 5us);
  EXPECT_EQ(until(*rig.alpha->send_cq, begin), 6us);
}

TEST_F(LoopbackQpTest, sends__of_one_device_share_its_transmitter) {
  const auto second = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  Rig::connect(*rig.alpha, *second, *rig.beta, *peer);
  rig.beta->post_recv(1, 2, 0, 4000);
  const Sge element = rig.alpha->sge(0, 4000);
  const SendWr request = send_wr(1, {&element, 1});
  const Instant begin = rig.now();
  rig.alpha->qp->post_send({&request, 1});
  second->post_send({&request, 1});
  until(*rig.beta->recv_cq, begin);
  ASSERT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 1U);
  EXPECT_EQ(until(*rig.beta->recv_cq, begin), 9us);
}

TEST_F(LoopbackQpTest, read__is_serialised_by_the_responder) {
  const Sge element = rig.alpha->sge(0, 4000);
  const Instant begin = rig.now();
  rig.alpha->post(remote_wr(Opcode::rdma_read, 1, {&element, 1}, rig.beta->remote(0)));
  EXPECT_EQ(until(*rig.alpha->send_cq, begin), 6us);
}

TEST_F(LoopbackQpTest, source__is_read_at_delivery_so_that_early_reuse_shows) {
  rig.alpha->fill(0, 1000, 1);
  rig.beta->post_recv(1, 1, 0, 1000);
  const Sge element = rig.alpha->sge(0, 1000);
  rig.alpha->post(send_wr(1, {&element, 1}));
  rig.alpha->host->reactor().run(rig.now() + 1us);
  rig.alpha->fill(0, 1000, 2);  // before the completion: a fault of the user's
  ASSERT_EQ(rig.wait_recvs(*rig.beta, 1).size(), 1U);
  EXPECT_TRUE(rig.beta->holds(0, 1000, 2));
}

TEST_F(LoopbackQpTest, send_to_itself__within_one_host_works) {
  const auto left = rig.alpha->make_qp();
  const auto right = rig.alpha->make_qp();
  Rig::connect(*rig.alpha, *left, *rig.alpha, *right);
  rig.alpha->fill(0, 500, 1);
  rig.alpha->post_recv(1, 1, 100, 500);  // overlaps its source
  const Sge element = rig.alpha->sge(0, 500);
  const SendWr request = send_wr(2, {&element, 1});
  left->post_send({&request, 1});
  EXPECT_EQ(statuses(rig.wait_recvs(*rig.alpha, 1)), std::vector{WcStatus::success});
  EXPECT_TRUE(rig.alpha->holds(100, 500, 1));
}

// Posts and receives from inside a turn.
class PostingTurn final : public fabric::Turn {
 public:
  PostingTurn(Endpoint& at, std::function<void()> action) : at_(at), action_(std::move(action)) {
    at_.host->reactor().attach(this);
  }
  ~PostingTurn() { at_.host->reactor().attach(nullptr); }
  PostingTurn(const PostingTurn&) = delete;
  PostingTurn& operator=(const PostingTurn&) = delete;
  fabric::TurnResult turn(Instant) noexcept override {
    if (turns++ > 0) return {};
    action_();
    return {.more = false, .work = {.handlers = 1}};
  }
  int turns = 0;

 private:
  Endpoint& at_;
  std::function<void()> action_;
};

TEST_F(LoopbackQpTest, post_send__inside_a_turn_reaches_the_device_when_the_turn_is_paid) {
  rig.beta->post_recv(1);
  const Instant begin = rig.now();
  PostingTurn turn(*rig.alpha, [&] { rig.alpha->post(send_wr(1, {})); });
  EXPECT_EQ(until(*rig.beta->recv_cq, begin), 5100ns + 1us);
}

TEST_F(LoopbackQpTest, post_recv__inside_a_turn_reaches_the_device_when_the_turn_is_paid) {
  const Instant begin = rig.now();
  PostingTurn turn(*rig.beta, [&] { rig.beta->post_recv(1); });
  rig.alpha->post(send_wr(1, {}));  // arrives at 1 us: an RNR NAK, though the turn has posted by then
  EXPECT_GT(until(*rig.beta->recv_cq, begin), 10us);
}

TEST_F(LoopbackQpTest, fail__inside_the_turn_that_posted_flushes_what_it_posted) {
  PostingTurn turn(*rig.alpha, [&] {
    rig.alpha->post(send_wr(1, {}));
    rig.alpha->qp->fail();
    rig.alpha->post(send_wr(2, {}));
  });
  const auto done = rig.wait_sends(*rig.alpha, 3, 1ms);
  EXPECT_EQ(conformance::ids(done), conformance::numbers(1, 2));
  EXPECT_EQ(statuses(done), std::vector(2, WcStatus::flushed));
}

TEST_F(LoopbackQpTest, retry__waits_for_exactly_the_timeout_each_time) {
  rig.beta->qp.reset();
  const Instant begin = rig.now();
  rig.alpha->post(send_wr(1, {}));
  rig.run_until([&] { return rig.alpha->send_cq->arm() == ArmResult::pending; });
  const Duration expected = ack_wait(8) * 3;  // the first attempt and two retries
  EXPECT_GE(rig.now() - begin, expected);
  EXPECT_LE(rig.now() - begin, expected + 2us);  // the step of the rig
}

TEST_F(LoopbackQpTest, rnr__waits_for_exactly_the_timer) {
  const Instant begin = rig.now();
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(2us);
  rig.beta->post_recv(1);
  // Out 1 us, NAK back 1 us, 10 us, out again 1 us.
  EXPECT_EQ(until(*rig.beta->recv_cq, begin), 13us);
}

TEST_F(LoopbackQpTest, connect__with_a_wrong_first_psn_gets_no_answer) {
  const auto mine = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  fabric::QpAddress wrong = peer->address();
  wrong.psn ^= 1U;
  ASSERT_TRUE(mine->connect(wrong, rig.alpha->config.path).has_value());
  ASSERT_TRUE(peer->connect(mine->address(), rig.alpha->config.path).has_value());
  rig.beta->post_recv(1);
  const SendWr request = send_wr(1, {});
  mine->post_send({&request, 1});
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::retry_exceeded});
}

TEST_F(LoopbackQpTest, reads__beyond_what_the_responder_allows_are_refused) {
  const auto mine = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  fabric::PathConfig path = rig.alpha->config.path;
  ASSERT_TRUE(mine->connect(peer->address(), path).has_value());
  path.rd_atomic_dest_max = 0;
  ASSERT_TRUE(peer->connect(mine->address(), path).has_value());
  const Sge element = rig.alpha->sge(0, 8);
  const SendWr read = remote_wr(Opcode::rdma_read, 1, {&element, 1}, rig.beta->remote(0));
  mine->post_send({&read, 1});
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::remote_invalid_request});
}

TEST_F(LoopbackQpTest, reads__of_a_queue_pair_without_any_allowed_fail_locally) {
  const auto mine = rig.alpha->make_qp();
  const auto peer = rig.beta->make_qp();
  fabric::PathConfig path = rig.alpha->config.path;
  path.rd_atomic_max = 0;
  ASSERT_TRUE(mine->connect(peer->address(), path).has_value());
  ASSERT_TRUE(peer->connect(mine->address(), path).has_value());
  const Sge element = rig.alpha->sge(0, 8);
  const SendWr read = remote_wr(Opcode::rdma_read, 1, {&element, 1}, rig.beta->remote(0));
  mine->post_send({&read, 1});
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::local_qp_operation});
}

TEST_F(LoopbackQpTest, atomic__of_another_length_than_eight_fails_locally) {
  const Sge element = rig.alpha->sge(0, 4);
  rig.alpha->post(remote_wr(Opcode::fetch_add, 1, {&element, 1}, rig.beta->remote(0)));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::local_length});
}

TEST_F(LoopbackQpTest, poll__of_completions_of_a_destroyed_queue_pair_is_safe) {
  rig.beta->post_recv(1, 2);
  rig.alpha->post(send_wr(1, {}));
  rig.alpha->post(send_wr(2, {}));
  rig.run_for(100us);
  rig.alpha->qp.reset();
  EXPECT_EQ(rig.alpha->poll(*rig.alpha->send_cq).size(), 2U);
}

using LoopbackQpDeathTest = LoopbackQpTest;

TEST_F(LoopbackQpDeathTest, inlined__read_is_a_programming_error) {
  const Sge element = rig.alpha->sge(0, 8);
  SendWr read = remote_wr(Opcode::rdma_read, 1, {&element, 1}, rig.beta->remote(0));
  read.flags = SendFlags::signaled | SendFlags::inlined;
  EXPECT_DEATH(rig.alpha->post(read), "towards the peer");
}

TEST_F(LoopbackQpDeathTest, queues__of_another_device_are_a_programming_error) {
  EXPECT_DEATH((void)rig.alpha->host->device().create_qp({.send_cq = rig.beta->send_cq.get(),
                                                          .recv_cq = rig.alpha->recv_cq.get(),
                                                          .srq = rig.alpha->srq.get(),
                                                          .send_depth = 1}),
               "one device");
}

// Random batches, some unsignalled, with and without receives: each completes once and in order.
TEST_F(LoopbackQpTest, random__batches_complete_exactly_once) {
  Prng prng(3);
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  for (int step = 0; step < 3000; ++step) {
    std::vector<SendWr> batch;
    const Sge element = rig.alpha->sge(0, prng.below(3000));
    for (std::uint64_t i = prng.below(8); i > 0; --i) {
      const SendFlags flags = prng.chance(0.3) ? SendFlags::none : SendFlags::signaled;
      batch.push_back(send_wr(posted + batch.size(), {&element, 1}, flags));
    }
    if (!batch.empty()) batch.back().flags = SendFlags::signaled;
    posted += rig.alpha->post(batch);
    rig.beta->post_recv(0, prng.below(6), 0, 3000);
    rig.run_for(Duration{static_cast<std::int64_t>(prng.below(20'000))});
    rig.beta->poll(*rig.beta->recv_cq);
    for (const Completion& one : rig.alpha->poll(*rig.alpha->send_cq)) {
      ASSERT_EQ(one.status, WcStatus::success);
      const auto id = static_cast<std::uint64_t>(one.wr_id);
      ASSERT_GE(id + 1, completed + 1);
      completed = id + 1;
    }
  }
  ASSERT_LE(posted - completed, 16U);
  rig.alpha->qp->fail();
  for (const Completion& one : rig.wait_sends(*rig.alpha, 16, 1ms)) {
    ASSERT_EQ(one.status, WcStatus::flushed);
    completed = static_cast<std::uint64_t>(one.wr_id) + 1;
  }
  EXPECT_GT(completed, 5000U);
}

}  // namespace
}  // namespace bx::loopback
