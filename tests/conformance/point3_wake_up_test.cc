// SPDX-License-Identifier: BSD-3-Clause
// Contract point 3: a wake-up never runs inside a call of the user's; at most one per arm(); arm() says
// pending if a completion is queued already.
#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

class Point3WakeUp : public ContractTest {
 protected:
  // Calls arm as the rig calls everything else, so that a wake-up inside it shows.
  static ArmResult arm(Endpoint& at, fabric::CompletionQueue& cq) {
    ++at.calls_open;
    const ArmResult result = cq.arm();
    --at.calls_open;
    return result;
  }
  static void expect_no_wake_inside_calls(const Rig& rig) {
    for (const Endpoint* at : {rig.alpha.get(), rig.beta.get()}) {
      EXPECT_EQ(at->send_waker.wakes_inside_call, 0);
      EXPECT_EQ(at->recv_waker.wakes_inside_call, 0);
      EXPECT_EQ(at->event_waker.wakes_inside_call, 0);
    }
  }
};
BX_CONFORMANCE_GROUP(Point3WakeUp);

TEST_P(Point3WakeUp, arm__of_an_empty_queue_wakes_once_for_the_next_completion) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 8);
  ASSERT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
  rig.run_for(1ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 0);
  rig.alpha->post(send_wr(0, {}));
  EXPECT_TRUE(rig.run_until([&] { return rig.beta->recv_waker.wakes > 0; }));
  EXPECT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 1U);
  expect_no_wake_inside_calls(rig);
}

TEST_P(Point3WakeUp, arm__wakes_once_however_many_completions_come) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 16);
  ASSERT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
  for (std::uint64_t id = 0; id < 10; ++id) rig.alpha->post(send_wr(id, {}));
  rig.run_for(5ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 1);
  EXPECT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 10U);
  rig.alpha->post(send_wr(10, {}));  // not armed again, so silent
  rig.run_for(5ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 1);
  expect_no_wake_inside_calls(rig);
}

TEST_P(Point3WakeUp, arm__twice_wakes_once) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 4);
  ASSERT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
  ASSERT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
  rig.alpha->post(send_wr(0, {}));
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(5ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 1);
}

TEST_P(Point3WakeUp, arm__says_pending_and_does_not_arm_if_a_completion_is_queued) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 4);
  rig.alpha->post(send_wr(0, {}));
  rig.run_for(5ms);
  EXPECT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::pending);
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(5ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 0);
  EXPECT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 2U);
  EXPECT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
  rig.alpha->post(send_wr(2, {}));
  rig.run_for(5ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 1);
  expect_no_wake_inside_calls(rig);
}

TEST_P(Point3WakeUp, arm__says_pending_after_a_poll_that_left_something) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 4);
  rig.alpha->post(send_wr(0, {}));
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(5ms);
  ASSERT_EQ(rig.beta->poll(*rig.beta->recv_cq, 1).size(), 1U);
  EXPECT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::pending);
  ASSERT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 1U);
  EXPECT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
}

TEST_P(Point3WakeUp, queue__that_is_not_armed_never_wakes) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 4);
  for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}));
  rig.run_for(5ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 0);
  EXPECT_EQ(rig.alpha->send_waker.wakes, 0);
}

TEST_P(Point3WakeUp, arm__again_and_again_wakes_each_time) {
  Rig rig(GetParam());
  rig.beta->post_recv(0, 20);
  for (int round = 1; round <= 20; ++round) {
    ASSERT_EQ(arm(*rig.beta, *rig.beta->recv_cq), ArmResult::armed);
    rig.alpha->post(send_wr(1, {}));
    ASSERT_TRUE(rig.run_until([&] { return rig.beta->recv_waker.wakes == round; })) << round;
    ASSERT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 1U);
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  }
  expect_no_wake_inside_calls(rig);
}

TEST_P(Point3WakeUp, wake_up__of_a_failing_queue_pair_comes_from_the_loop) {
  Rig rig(GetParam());
  ASSERT_EQ(rig.alpha->post(send_wr(0, {})), 1U);
  ASSERT_EQ(arm(*rig.alpha, *rig.alpha->send_cq), ArmResult::armed);
  rig.alpha->fail();
  EXPECT_EQ(rig.alpha->send_waker.wakes, 0);
  EXPECT_TRUE(rig.run_until([&] { return rig.alpha->send_waker.wakes > 0; }));
  EXPECT_EQ(rig.alpha->poll(*rig.alpha->send_cq).size(), 1U);
  ASSERT_EQ(arm(*rig.alpha, *rig.alpha->send_cq), ArmResult::armed);
  rig.alpha->post(send_wr(1, {}));  // is flushed, but not in here
  EXPECT_EQ(rig.alpha->send_waker.wakes, 1);
  EXPECT_TRUE(rig.run_until([&] { return rig.alpha->send_waker.wakes == 2; }));
  expect_no_wake_inside_calls(rig);
}

TEST_P(Point3WakeUp, arm__of_a_queue_without_a_waker_is_harmless) {
  Rig rig(GetParam());
  auto cq = rig.beta->host->device().create_cq({.depth = 4, .waker = nullptr});
  ASSERT_TRUE(cq.has_value());
  auto qp = rig.beta->host->device().create_qp(
      {.send_cq = cq->get(), .recv_cq = cq->get(), .srq = rig.beta->srq.get(), .send_depth = 4});
  ASSERT_TRUE(qp.has_value());
  const auto peer = rig.alpha->make_qp();
  Rig::connect(*rig.alpha, *peer, *rig.beta, **qp);
  rig.beta->post_recv(0, 1);
  ASSERT_EQ((*cq)->arm(), ArmResult::armed);
  const SendWr request = send_wr(1, {});
  ASSERT_EQ(peer->post_send({&request, 1}), 1U);
  EXPECT_EQ(rig.wait(*rig.beta, **cq, 1).size(), 1U);
}

// The way the library uses it: the queue wakes the reactor, which takes a turn, which polls and arms again.
class PollingTurn final : public fabric::Turn {
 public:
  PollingTurn(Endpoint& at, fabric::CompletionQueue& cq) : at_(at), cq_(cq) {
    at_.host->reactor().attach(this);
  }
  ~PollingTurn() { at_.host->reactor().attach(nullptr); }
  PollingTurn(const PollingTurn&) = delete;
  PollingTurn& operator=(const PollingTurn&) = delete;
  fabric::TurnResult turn(Instant) noexcept override {
    ++turns;
    inside_call = inside_call || at_.calls_open > 0;
    Completion one;
    while (cq_.poll({&one, 1}) == 1) ++received;
    return {.more = cq_.arm() == ArmResult::pending, .work = {}};
  }
  int turns = 0;
  int received = 0;
  bool inside_call = false;

 private:
  Endpoint& at_;
  fabric::CompletionQueue& cq_;
};

TEST_P(Point3WakeUp, reactor__takes_turns_when_an_armed_queue_wakes_it) {
  Rig rig(GetParam());
  Endpoint& beta = *rig.beta;
  auto cq = beta.host->device().create_cq({.depth = 64, .waker = &beta.host->reactor().waker()});
  ASSERT_TRUE(cq.has_value());
  auto qp = beta.host->device().create_qp(
      {.send_cq = beta.send_cq.get(), .recv_cq = cq->get(), .srq = beta.srq.get(), .send_depth = 4});
  ASSERT_TRUE(qp.has_value());
  const auto peer = rig.alpha->make_qp();
  Rig::connect(*rig.alpha, *peer, beta, **qp);
  beta.post_recv(0, 32);
  PollingTurn turn(beta, **cq);
  EXPECT_EQ(turn.turns, 0);
  ASSERT_TRUE(rig.run_until([&] { return turn.turns == 1; }));  // attaching asks for a first one
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t id = 0; id < 3; ++id) {
      const SendWr request = send_wr(id, {});
      ++rig.calls_open;
      EXPECT_EQ(peer->post_send({&request, 1}), 1U);
      --rig.calls_open;
    }
    ASSERT_TRUE(rig.run_until([&] { return turn.received == 3 * (round + 1); }));
    ASSERT_EQ(rig.wait_sends(*rig.alpha, 3).size(), 3U);
  }
  EXPECT_FALSE(turn.inside_call);
}

}  // namespace
}  // namespace bx::conformance
