// SPDX-License-Identifier: BSD-3-Clause
// Contract point 6: no receive posted: RNR NAK, RNR retry as configured, then rnr_retry_exceeded. No answer:
// timeout, retry_cnt retransmissions, then retry_exceeded.
#include "tests/conformance/rig.h"

namespace bx::conformance {
namespace {

class Point6Retry : public ContractTest {
 protected:
  static RigConfig config(PathConfig path) {
    RigConfig config;
    config.path = path;
    return config;
  }
  // From now until the oldest request of alpha completes, and the status.
  static std::pair<Duration, WcStatus> time_to_completion(Rig& rig, Duration limit = 2s) {
    const Instant begin = rig.now();
    const auto done = rig.wait_sends(*rig.alpha, 1, limit);
    return {rig.now() - begin, done.size() == 1 ? done[0].status : WcStatus::success};
  }
};
BX_CONFORMANCE_GROUP(Point6Retry);

constexpr PathConfig kPath{
    .mtu_bytes = 1024, .ack_timeout = 8, .retry_cnt = 2, .rnr_retry = 7, .min_rnr_timer = 1};
// What a path and a device may add to a timer.
constexpr Duration kSlack = 300us;
constexpr Duration kAckTimeout{4096 << 8};

TEST_P(Point6Retry, rnr__retries_until_a_receive_is_posted) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 500, 1);
  const Sge element = rig.alpha->sge(0, 500);
  rig.alpha->post(send_wr(1, {&element, 1}));
  rig.run_for(3ms);
  ASSERT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.beta->post_recv(5, 1, 0, 500);
  ASSERT_EQ(statuses(rig.wait_recvs(*rig.beta, 1)), std::vector{WcStatus::success});
  EXPECT_TRUE(rig.beta->holds(0, 500, 1));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
}

TEST_P(Point6Retry, rnr__with_retry_7_retries_for_ever) {
  Rig rig(GetParam());
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(20ms);  // far more than seven times the timer
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.beta->post_recv(5);
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
}

TEST_P(Point6Retry, rnr__with_retry_0_fails_at_the_first_nak) {
  PathConfig path = kPath;
  path.rnr_retry = 0;
  path.min_rnr_timer = 20;  // 10.24 ms: it must not wait for it
  Rig rig(GetParam(), config(path));
  rig.alpha->post(send_wr(1, {}));
  const auto [time, status] = time_to_completion(rig);
  EXPECT_EQ(status, WcStatus::rnr_retry_exceeded);
  EXPECT_TRUE(rig.within(time, 5ms)) << time.count();
  EXPECT_TRUE(rig.failed(*rig.alpha));
}

TEST_P(Point6Retry, rnr__with_retry_n_waits_n_timers_and_fails) {
  for (const std::uint8_t retries : {std::uint8_t{1}, std::uint8_t{3}, std::uint8_t{6}}) {
    PathConfig path = kPath;
    path.rnr_retry = retries;
    path.min_rnr_timer = 14;  // 1.28 ms
    Rig rig(GetParam(), config(path));
    rig.alpha->post(send_wr(1, {}));
    const auto [time, status] = time_to_completion(rig);
    EXPECT_EQ(status, WcStatus::rnr_retry_exceeded);
    EXPECT_GE(time, 1280us * retries);
    EXPECT_TRUE(rig.within(time, 1280us * retries + kSlack * (retries + 1))) << time.count();
  }
}

TEST_P(Point6Retry, rnr__waits_as_long_as_the_responder_asks) {
  RigConfig asymmetric = config(kPath);  // alpha itself would ask for 10 us
  asymmetric.beta_path = kPath;
  asymmetric.beta_path->min_rnr_timer = 18;  // 5.12 ms
  Rig rig(GetParam(), asymmetric);
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(1ms);
  rig.beta->post_recv(5);
  const Instant begin = rig.now();
  ASSERT_EQ(rig.wait_sends(*rig.alpha, 1).size(), 1U);
  EXPECT_GE(rig.now() - begin, 3900us);
  EXPECT_TRUE(rig.within(rig.now() - begin, 4500us));
}

TEST_P(Point6Retry, rnr__timer_code_0_is_the_longest_wait) {
  PathConfig path = kPath;
  path.min_rnr_timer = 0;  // 655.36 ms
  Rig rig(GetParam(), config(path));
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(1ms);
  rig.beta->post_recv(5);
  const auto [time, status] = time_to_completion(rig);
  EXPECT_EQ(status, WcStatus::success);
  EXPECT_GE(time, 654ms);
  EXPECT_TRUE(rig.within(time, 656ms)) << time.count();
}

TEST_P(Point6Retry, rnr__retries_are_counted_anew_for_each_message) {
  PathConfig path = kPath;
  path.rnr_retry = 2;
  path.min_rnr_timer = 14;  // 1.28 ms
  Rig rig(GetParam(), config(path));
  for (std::uint64_t id = 0; id < 4; ++id) {
    rig.alpha->post(send_wr(id, {}));
    rig.run_for(1800us);  // one or two NAKs
    ASSERT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
    rig.beta->post_recv(id);
    ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success}) << id;
  }
}

TEST_P(Point6Retry, rnr__holds_back_what_is_behind_and_keeps_the_order) {
  Rig rig(GetParam());
  rig.alpha->fill(0, 3000, 2);
  rig.beta->fill(4096, 3000, 50);
  const Sge element = rig.alpha->sge(0, 3000);
  SendWr stuck = remote_wr(Opcode::send_with_imm, 1, {}, {});
  stuck.imm = 111;
  SendWr last = remote_wr(Opcode::send_with_imm, 3, {}, {});
  last.imm = 333;
  const std::array<SendWr, 3> all{
      stuck, remote_wr(Opcode::rdma_write, 2, {&element, 1}, rig.beta->remote(4096)), last};
  ASSERT_EQ(rig.alpha->post(all), 3U);
  rig.run_for(5ms);
  EXPECT_TRUE(rig.beta->holds(4096, 3000, 50));
  rig.beta->post_recv(5, 2);
  const auto received = rig.wait_recvs(*rig.beta, 3, 5ms);
  ASSERT_EQ(ids(received), numbers(5, 2));
  EXPECT_EQ(received[0].imm, 111U);
  EXPECT_EQ(received[1].imm, 333U);
  EXPECT_TRUE(rig.beta->holds(4096, 3000, 2));
  EXPECT_EQ(ids(rig.wait_sends(*rig.alpha, 3)), numbers(1, 3));
}

TEST_P(Point6Retry, rnr__meets_write_with_imm_but_neither_write_nor_read) {
  PathConfig path = kPath;
  path.rnr_retry = 0;
  Rig rig(GetParam(), config(path));
  const Sge word = rig.alpha->sge(0, 8);
  const auto there = rig.beta->remote(0);
  rig.alpha->post(remote_wr(Opcode::rdma_write, 1, {&word, 1}, there));
  rig.alpha->post(remote_wr(Opcode::rdma_read, 2, {&word, 1}, there));
  rig.alpha->post(remote_wr(Opcode::rdma_write_with_imm, 3, {&word, 1}, there));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 3)),
            (std::vector{WcStatus::success, WcStatus::success, WcStatus::rnr_retry_exceeded}));
}

TEST_P(Point6Retry, rnr__leaves_the_responder_in_order) {
  PathConfig path = kPath;
  path.rnr_retry = 0;
  Rig rig(GetParam(), config(path));
  rig.alpha->post(send_wr(1, {}));
  ASSERT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::rnr_retry_exceeded});
  rig.run_for(20ms);
  std::array<fabric::DeviceEvent, 4> events;
  EXPECT_EQ(rig.beta->host->device().poll_events(events), 0U);
  EXPECT_TRUE(rig.beta->poll(*rig.beta->send_cq).empty());
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
}

TEST_P(Point6Retry, no_answer__from_a_destroyed_queue_pair_ends_in_retry_exceeded) {
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{5}}) {
    PathConfig path = kPath;
    path.retry_cnt = retries;
    Rig rig(GetParam(), config(path));
    rig.beta->post_recv(1, 8);
    rig.beta->qp.reset();
    rig.alpha->post(send_wr(1, {}));
    rig.alpha->post(send_wr(2, {}));
    const auto [time, status] = time_to_completion(rig);
    EXPECT_EQ(status, WcStatus::retry_exceeded);
    // A device may wait up to four times the timeout (IBA 1.4, 9.7.6.1.3).
    EXPECT_GE(time, kAckTimeout * (retries + 1));
    EXPECT_TRUE(rig.within(time, 4 * kAckTimeout * (retries + 1) + kSlack)) << time.count();
    EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::flushed});
    EXPECT_TRUE(rig.failed(*rig.alpha));
  }
}

TEST_P(Point6Retry, no_answer__from_a_failed_queue_pair_for_every_opcode) {
  for (const Opcode opcode : {Opcode::send, Opcode::send_with_imm, Opcode::rdma_write,
                              Opcode::rdma_write_with_imm, Opcode::rdma_read}) {
    Rig rig(GetParam(), config(kPath));
    rig.beta->post_recv(1, 8, 0, 64);
    rig.beta->fail();
    rig.run_for(100us);
    const Sge word = rig.alpha->sge(0, 8);
    rig.alpha->post(remote_wr(opcode, 1, {&word, 1}, rig.beta->remote(0)));
    EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::retry_exceeded});
    EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
  }
}

TEST_P(Point6Retry, no_answer__is_ridden_out_if_the_peer_connects_in_time) {
  PathConfig path = kPath;
  path.retry_cnt = 7;
  Rig rig(GetParam(), config(path));
  const auto mine = rig.alpha->make_qp();
  const auto late = rig.beta->make_qp();
  ASSERT_TRUE(mine->connect(late->address(), path).has_value());
  rig.alpha->fill(0, 5000, 9);
  const Sge element = rig.alpha->sge(0, 5000);
  const std::array<SendWr, 2> both{send_wr(1, {&element, 1}), send_wr(2, {})};
  ASSERT_EQ(mine->post_send(both), 2U);
  rig.beta->post_recv(1, 2, 0, 5000);
  rig.run_for(2ms);
  ASSERT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  ASSERT_TRUE(late->connect(mine->address(), path).has_value());
  const auto done = rig.wait_sends(*rig.alpha, 2);
  EXPECT_EQ(ids(done), numbers(1, 2));
  EXPECT_EQ(statuses(done), std::vector(2, WcStatus::success));
  EXPECT_EQ(ids(rig.wait_recvs(*rig.beta, 3, 5ms)), numbers(1, 2));
  EXPECT_TRUE(rig.beta->holds(0, 5000, 9));
}

TEST_P(Point6Retry, no_answer__with_ack_timeout_0_is_waited_for_for_ever) {
  PathConfig path = kPath;
  path.ack_timeout = 0;
  Rig rig(GetParam(), config(path));
  rig.beta->qp.reset();
  rig.alpha->post(send_wr(1, {}));
  rig.run_for(500ms);
  EXPECT_TRUE(rig.alpha->poll(*rig.alpha->send_cq).empty());
  rig.alpha->fail();
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::flushed});
}

TEST_P(Point6Retry, no_answer__from_a_host_that_is_gone) {
  Rig rig(GetParam(), config(kPath));
  rig.beta.reset();
  rig.alpha->post(send_wr(1, {}));
  rig.alpha->post(send_wr(2, {}));
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 2)),
            (std::vector{WcStatus::retry_exceeded, WcStatus::flushed}));
}

TEST_P(Point6Retry, no_answer__from_a_queue_pair_that_is_connected_to_another) {
  Rig rig(GetParam(), config(kPath));
  const auto stranger = rig.alpha->make_qp();
  ASSERT_TRUE(stranger->connect(rig.beta->qp->address(), kPath).has_value());
  rig.beta->post_recv(1, 2);
  const SendWr request = send_wr(1, {});
  ASSERT_EQ(stranger->post_send({&request, 1}), 1U);
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::retry_exceeded});
  EXPECT_TRUE(rig.beta->poll(*rig.beta->recv_cq).empty());
  rig.alpha->post(send_wr(2, {}));  // the true peer is not disturbed
  EXPECT_EQ(statuses(rig.wait_sends(*rig.alpha, 1)), std::vector{WcStatus::success});
}

}  // namespace
}  // namespace bx::conformance
