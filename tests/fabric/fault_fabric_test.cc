// SPDX-License-Identifier: BSD-3-Clause
// Also of fault_queues.cc, which only works within a FaultFabric.
#include "libbx/fabric/fault_fabric.h"

#include <gtest/gtest.h>

#include "libbx/providers/loopback/loopback_fabric.h"
#include "tests/conformance/rig.h"

namespace bx::fabric {
namespace {

using conformance::ids;
using conformance::numbers;
using conformance::Rig;
using conformance::RigConfig;
using conformance::send_wr;
using conformance::statuses;
using namespace std::chrono_literals;

// A rig over loopback with a fault plan. The plan's host names are "alpha" and "beta".
class FaultRig : public Rig {
 public:
  explicit FaultRig(FaultPlan plan, const RigConfig& config = {})
      : Rig(std::make_unique<FaultFabric>(std::make_unique<loopback::LoopbackFabric>(), std::move(plan)),
            {"alpha", "beta"}, config) {}
  std::uint64_t injected(FaultKind kind) { return static_cast<FaultFabric&>(*fabric).injected(kind); }
};

FaultPlan planned(FaultKind kind, std::uint64_t nth, const char* host) {
  FaultPlan plan;
  plan.planned = {{.kind = kind, .nth = nth, .host = host}};
  return plan;
}

TEST(FaultFabric, completion_error__replaces_the_status_and_fails_the_queue_pair) {
  FaultPlan plan = planned(FaultKind::completion_error, 3, "alpha");
  plan.error_status = WcStatus::retry_exceeded;
  FaultRig rig(plan);
  rig.beta->post_recv(0, 4);
  for (std::uint64_t id = 0; id < 8; ++id) rig.alpha->post(send_wr(id, {}));
  const auto done = rig.wait_sends(*rig.alpha, 8);
  EXPECT_EQ(ids(done), numbers(0, 8));
  EXPECT_EQ(done[1].status, WcStatus::success);
  EXPECT_EQ(done[2].status, WcStatus::retry_exceeded);
  EXPECT_EQ(done[7].status, WcStatus::flushed);  // there was no receive for it
  EXPECT_TRUE(rig.failed(*rig.alpha));
  EXPECT_EQ(rig.injected(FaultKind::completion_error), 1U);
}

TEST(FaultFabric, completion_error__strikes_receives_too) {
  FaultRig rig(planned(FaultKind::completion_error, 1, "beta"));
  rig.beta->post_recv(9, 1);
  rig.alpha->post(send_wr(0, {}));
  const auto received = rig.wait_recvs(*rig.beta, 1);
  EXPECT_EQ(ids(received), numbers(9, 1));
  EXPECT_EQ(statuses(received), std::vector{WcStatus::remote_operation});
  EXPECT_TRUE(rig.failed(*rig.beta));
}

TEST(FaultFabric, completion_delay__holds_back_and_keeps_the_order) {
  FaultPlan plan = planned(FaultKind::completion_delay, 2, "alpha");
  plan.delay_min = plan.delay_max = 5ms;
  FaultRig rig(plan);
  rig.beta->post_recv(0, 8);
  for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}));
  rig.run_for(1ms);
  EXPECT_EQ(ids(rig.alpha->poll(*rig.alpha->send_cq)), numbers(0, 1));
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.run_for(4ms);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.run_for(2ms);
  EXPECT_EQ(ids(rig.alpha->poll(*rig.alpha->send_cq)), numbers(1, 3));
}

TEST(FaultFabric, completion_delay__wakes_an_armed_queue_when_it_is_due) {
  FaultPlan plan = planned(FaultKind::completion_delay, 1, "alpha");
  plan.delay_min = plan.delay_max = 5ms;
  FaultRig rig(plan);
  rig.beta->post_recv(0, 8);
  rig.alpha->post(send_wr(0, {}));
  rig.run_for(100us);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());  // taken, and held back
  EXPECT_EQ(rig.alpha->send_cq->arm(), ArmResult::armed);
  rig.alpha->post(send_wr(1, {}));  // completes behind the one that is held back
  rig.run_for(4ms);
  EXPECT_EQ(rig.alpha->send_waker.wakes, 0);
  rig.run_for(2ms);
  EXPECT_EQ(rig.alpha->send_waker.wakes, 1);
  EXPECT_EQ(rig.alpha->send_cq->arm(), ArmResult::pending);
  EXPECT_EQ(ids(rig.alpha->poll(*rig.alpha->send_cq)), numbers(0, 2));
  EXPECT_EQ(rig.alpha->send_cq->arm(), ArmResult::armed);
  rig.alpha->post(send_wr(2, {}));
  rig.run_for(1ms);
  EXPECT_EQ(rig.alpha->send_waker.wakes, 2);
  EXPECT_EQ(rig.alpha->send_waker.wakes_inside_call, 0);
}

TEST(FaultFabric, wake_up_lost__leaves_the_completion_to_be_polled) {
  FaultRig rig(planned(FaultKind::wake_up_lost, 1, "beta"));
  rig.beta->post_recv(0, 8);
  ASSERT_EQ(rig.beta->recv_cq->arm(), ArmResult::armed);
  rig.alpha->post(send_wr(0, {}));
  rig.run_for(1ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 0);
  EXPECT_EQ(rig.injected(FaultKind::wake_up_lost), 1U);
  EXPECT_EQ(rig.beta->recv_cq->arm(), ArmResult::pending);
  EXPECT_EQ(rig.beta->poll(*rig.beta->recv_cq).size(), 1U);
  ASSERT_EQ(rig.beta->recv_cq->arm(), ArmResult::armed);
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(1ms);
  EXPECT_EQ(rig.beta->recv_waker.wakes, 1);
}

TEST(FaultFabric, queue_pair_failure__strikes_at_the_nth_request) {
  FaultRig rig(planned(FaultKind::queue_pair_failure, 5, "alpha"));
  rig.beta->post_recv(0, 16);
  for (std::uint64_t id = 0; id < 4; ++id) rig.alpha->post(send_wr(id, {}));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 4)), std::vector(4, WcStatus::success));
  for (std::uint64_t id = 4; id < 7; ++id) rig.alpha->post(send_wr(id, {}));
  const auto done = rig.wait_sends(*rig.alpha, 3);
  EXPECT_EQ(ids(done), numbers(4, 3));
  EXPECT_EQ(statuses(done), std::vector(3, WcStatus::flushed));
}

TEST(FaultFabric, creation_refused__strikes_each_kind_of_creation) {
  // The rig itself makes five objects on alpha: a region, two completion queues, a receive queue, a queue
  // pair.
  FaultPlan plan;
  for (std::uint64_t nth = 6; nth < 10; ++nth) {
    plan.planned.push_back({.kind = FaultKind::creation_refused, .nth = nth, .host = "alpha"});
  }
  FaultRig rig(plan);
  Device& device = rig.alpha->host->device();
  const auto refused = [](const auto& result) {
    return !result.has_value() && result.error().code == ErrorCode::exhausted;
  };
  EXPECT_TRUE(refused(device.register_memory(rig.alpha->memory, Access::local)));
  EXPECT_TRUE(refused(device.create_cq({.depth = 4})));
  EXPECT_TRUE(refused(device.create_srq({.depth = 4})));
  EXPECT_TRUE(refused(device.create_qp({.send_cq = rig.alpha->send_cq.get(),
                                        .recv_cq = rig.alpha->recv_cq.get(),
                                        .srq = rig.alpha->srq.get(),
                                        .send_depth = 4})));
  EXPECT_TRUE(device.create_cq({.depth = 4}).has_value());
}

TEST(FaultFabric, short_post__takes_a_shorter_prefix) {
  FaultRig rig(planned(FaultKind::short_post, 2, "alpha"));
  rig.beta->post_recv(0, 16);
  std::vector<SendWr> requests;
  for (std::uint64_t id = 0; id < 8; ++id) requests.push_back(send_wr(id, {}));
  ASSERT_EQ(rig.alpha->post(std::span(requests).first(2)), 2U);
  const std::size_t taken = rig.alpha->post(std::span(requests).subspan(2));
  ASSERT_LT(taken, 6U);
  ASSERT_EQ(rig.alpha->post(std::span(requests).subspan(2 + taken)), 6U - taken);
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 8)), numbers(0, 8));
}

// Everything at once, by seed: each request still completes exactly once and in order, and the same seed
// gives the same run.
std::vector<std::pair<std::uint64_t, WcStatus>> chaos(std::uint64_t seed) {
  FaultPlan plan{.seed = seed};
  FaultRig rig(plan.with(FaultKind::completion_error, 0.02)
                   .with(FaultKind::completion_delay, 0.2)
                   .with(FaultKind::short_post, 0.3)
                   .with(FaultKind::queue_pair_failure, 0.01));
  std::vector<std::pair<std::uint64_t, WcStatus>> seen;
  std::uint64_t next = 0;
  for (int round = 0; round < 300 && seen.size() < 100; ++round) {
    rig.beta->post_recv(0, 2);
    for (int i = 0; i < 4 && next < 100; ++i) next += rig.alpha->post(send_wr(next, {}));
    rig.run_for(200us);
    for (const Completion& one : rig.alpha->poll(*rig.alpha->send_cq)) {
      seen.emplace_back(static_cast<std::uint64_t>(one.wr_id), one.status);
    }
    rig.beta->poll(*rig.beta->recv_cq);
  }
  EXPECT_EQ(seen.size(), 100U);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].first, i);
  return seen;
}

TEST(FaultFabric, chaos__completes_everything_once_and_repeats_exactly) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) EXPECT_EQ(chaos(seed), chaos(seed)) << seed;
  EXPECT_NE(chaos(1), chaos(2));
}

}  // namespace
}  // namespace bx::fabric
