// SPDX-License-Identifier: GPL-2.0-only
// The requester alone, packet by packet: what it sends, and what it makes of each answer.
#include "sim/model/rc_requester.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "libbx/base/rc_timing.h"
#include "sim/model/wire_size.h"
#include "tests/sim/rc_fake.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using Op = BthOpcode;

std::vector<Op> opcodes(const std::vector<Frame>& frames) {
  std::vector<Op> out;
  for (const Frame& f : frames) out.push_back(f.opcode);
  return out;
}
std::vector<std::uint32_t> psns(const std::vector<Frame>& frames) {
  std::vector<std::uint32_t> out;
  for (const Frame& f : frames) out.push_back(f.psn);
  return out;
}

// --- Segmentation.

TEST(rc_requester, segmentation__names_each_packet_by_its_place) {
  struct Case {
    RequestOpcode request;
    std::uint32_t length;
    std::vector<Op> expected;
  };
  const std::vector<Case> cases{
      {RequestOpcode::send, 0, {Op::send_only}},
      {RequestOpcode::send, 256, {Op::send_only}},
      {RequestOpcode::send, 257, {Op::send_first, Op::send_last}},
      {RequestOpcode::send, 513, {Op::send_first, Op::send_middle, Op::send_last}},
      {RequestOpcode::send_with_imm, 1, {Op::send_only_imm}},
      {RequestOpcode::send_with_imm, 512, {Op::send_first, Op::send_last_imm}},
      {RequestOpcode::write, 255, {Op::write_only}},
      {RequestOpcode::write, 768, {Op::write_first, Op::write_middle, Op::write_last}},
      {RequestOpcode::write_with_imm, 0, {Op::write_only_imm}},
      {RequestOpcode::write_with_imm, 300, {Op::write_first, Op::write_last_imm}},
      {RequestOpcode::read, 5000, {Op::read_request}},
      {RequestOpcode::fetch_add, 8, {Op::fetch_add}},
      {RequestOpcode::cmp_swap, 8, {Op::cmp_swap}},
  };
  for (const Case& c : cases) {
    FakeRig rig({.mtu = 256});
    rig.post(c.request, c.length);
    const auto frames = rig.environment.pull();
    EXPECT_EQ(opcodes(frames), c.expected);
    std::uint32_t payload = 0;
    for (const Frame& f : frames) {
      payload += f.payload_bytes;
      EXPECT_EQ(f.wire_bytes, wire_bytes(f.opcode, f.payload_bytes));
    }
    EXPECT_EQ(payload, returns_data(c.request) ? 0 : c.length);
    EXPECT_TRUE(frames.back().ack_req);
  }
}

TEST(rc_requester, psns__follow_each_other_and_a_read_takes_those_of_its_response) {
  FakeRig rig({.send_psn = 0xfffffe, .mtu = 256});
  rig.post(RequestOpcode::send, 300);
  rig.post(RequestOpcode::read, 1000);
  rig.post(RequestOpcode::write, 1);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(0xfffffeU, 0xffffffU, 0U, 4U));
}

TEST(rc_requester, ack_req__is_set_at_the_end_and_every_interval) {
  FakeRig rig({.mtu = 256});  // asks every 4 packets
  rig.post(RequestOpcode::write, 256 * 10);
  std::vector<bool> asked;
  for (const Frame& f : rig.environment.pull()) asked.push_back(f.ack_req);
  EXPECT_THAT(asked, ElementsAre(false, false, false, false, true, false, false, false, true, true));
}

TEST(rc_requester, doorbell__hides_requests_until_they_are_fetched) {
  FakeRig rig;
  const SendRequest request{.id = 1};
  rig.qp.post_send({&request, 1});
  rig.qp.ring(nanoseconds{300});
  rig.qp.on_doorbell();
  EXPECT_TRUE(rig.environment.pull().empty());
  EXPECT_THAT(rig.environment.doorbells, ElementsAre(nanoseconds{300}));
  rig.environment.time = nanoseconds{300};
  rig.qp.on_doorbell();
  EXPECT_EQ(rig.environment.pull().size(), 1U);
}

// --- Acknowledgements.

TEST(rc_requester, ack__completes_everything_it_covers_and_nothing_else) {
  FakeRig rig({.mtu = 256});
  for (std::uint64_t id = 1; id <= 4; ++id) rig.post(RequestOpcode::write, 512, id);  // PSNs 0..7
  rig.environment.pull();
  rig.hear_ack(4);  // the first packet of the third
  EXPECT_EQ(rig.completions().size(), 2U);
  rig.hear_ack(3);  // old news
  EXPECT_TRUE(rig.completions().empty());
  rig.hear_ack(7);
  EXPECT_EQ(rig.completions().size(), 2U);
  EXPECT_EQ(rig.qp.requester().outstanding(), 0U);
  EXPECT_FALSE(rig.qp.requester().timer_armed());
}

TEST(rc_requester, ack__of_what_was_never_sent_is_ignored) {
  FakeRig rig;
  rig.post(RequestOpcode::write, 1);
  rig.environment.pull();
  rig.hear_ack(1);
  rig.hear_ack(0x7fffff);
  EXPECT_TRUE(rig.completions().empty());
  rig.hear_ack(0);
  EXPECT_EQ(rig.completions().size(), 1U);
}

TEST(rc_requester, sequence_nak__goes_back_once) {
  FakeRig rig({.mtu = 256});
  rig.post(RequestOpcode::write, 256 * 6);
  rig.environment.pull();
  rig.hear_ack(2, kSyndromeSequenceNak);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(2U, 3U, 4U, 5U));
  rig.hear_ack(2, kSyndromeSequenceNak);
  EXPECT_TRUE(rig.environment.pull().empty()) << "the same gap again";
  rig.hear_ack(4, kSyndromeSequenceNak);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(4U, 5U));
  EXPECT_EQ(rig.environment.counters().packets_retransmitted, 6U);
}

TEST(rc_requester, ack_during_retransmission__skips_what_it_covers) {
  FakeRig rig({.mtu = 256});
  rig.post(RequestOpcode::write, 256 * 6, 1);
  rig.post(RequestOpcode::write, 256 * 2, 2);
  rig.environment.pull();
  rig.hear_ack(1, kSyndromeSequenceNak);
  rig.hear_ack(6);  // late, from before: all but the last packet had arrived
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(7U));
  EXPECT_EQ(rig.completions().size(), 1U);
}

TEST(rc_requester, sequence_naks__beyond_retry_cnt_end_it) {
  FakeRig rig({.mtu = 256, .retry_cnt = 0});
  rig.post(RequestOpcode::write, 256 * 6);
  rig.environment.pull();
  rig.hear_ack(0, kSyndromeSequenceNak);
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, CompletionStatus::retry_exceeded);
}

TEST(rc_requester, fatal_nak__fails_the_request_that_has_its_psn) {
  struct Case {
    std::uint8_t syndrome;
    CompletionStatus expected;
  };
  for (const auto& [syndrome, expected] :
       {Case{kSyndromeInvalidRequest, CompletionStatus::remote_invalid_request},
        Case{kSyndromeRemoteAccess, CompletionStatus::remote_access},
        Case{kSyndromeRemoteOperation, CompletionStatus::remote_operation}}) {
    FakeRig rig({.mtu = 256});
    for (std::uint64_t id = 1; id <= 3; ++id) rig.post(RequestOpcode::write, 512, id);
    rig.environment.pull();
    rig.hear_ack(3, syndrome);  // the second packet of the second request
    const auto done = rig.completions();
    ASSERT_EQ(done.size(), 3U);
    EXPECT_EQ(done[0].status, CompletionStatus::success);
    EXPECT_EQ(done[1].status, expected);
    EXPECT_EQ(done[2].status, CompletionStatus::flushed);
    EXPECT_EQ(rig.qp.state(), QpState::error);
  }
}

// --- READs.

Frame response(Op opcode, std::uint32_t psn) {
  Frame frame;
  frame.opcode = opcode;
  frame.psn = psn;
  frame.syndrome = kSyndromeAck;
  return frame;
}

TEST(rc_requester, read_response__acknowledges_what_is_before_it) {
  FakeRig rig({.mtu = 256});
  rig.post(RequestOpcode::write, 10, 1);  // PSN 0
  rig.post(RequestOpcode::read, 300, 2);  // 1, 2
  rig.environment.pull();
  rig.hear(response(Op::read_response_first, 1), 256);
  EXPECT_EQ(rig.completions().size(), 1U);
  rig.hear(response(Op::read_response_last, 2), 44);
  EXPECT_EQ(rig.completions().size(), 1U);
}

TEST(rc_requester, answer_past_a_missing_read_response__asks_again_once) {
  FakeRig rig({.mtu = 256});
  rig.post(RequestOpcode::read, 768, 1);  // 0, 1, 2
  rig.post(RequestOpcode::write, 1, 2);   // 3
  rig.environment.pull();
  rig.hear(response(Op::read_response_first, 0), 256);
  rig.hear_ack(3);
  auto again = rig.environment.pull();
  EXPECT_THAT(opcodes(again), ElementsAre(Op::read_request, Op::write_only));
  EXPECT_EQ(again[0].psn, 1U);
  EXPECT_EQ(again[0].va, 1000U + 256U);
  EXPECT_EQ(again[0].dma_length, 512U);
  rig.hear_ack(3);
  EXPECT_TRUE(rig.environment.pull().empty());
  rig.hear(response(Op::read_response_first, 1), 256);
  rig.hear(response(Op::read_response_last, 2), 256);
  rig.hear_ack(3);
  EXPECT_EQ(rig.completions().size(), 2U);
}

TEST(rc_requester, read_response__of_the_wrong_length_is_a_fault) {
  FakeRig rig({.mtu = 256});
  rig.post(RequestOpcode::read, 300, 1);
  rig.environment.pull();
  rig.hear(response(Op::read_response_first, 0), 255);
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, CompletionStatus::local_qp_operation);
}

TEST(rc_requester, reads__beyond_rd_atomic_max_wait) {
  FakeRig rig({.mtu = 256, .rd_atomic_max = 2});
  for (std::uint64_t id = 1; id <= 4; ++id) rig.post(RequestOpcode::read, 256, id);
  rig.post(RequestOpcode::write, 1, 5);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(0U, 1U));
  rig.hear(response(Op::read_response_only, 0), 256);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(2U));
  rig.hear(response(Op::read_response_only, 1), 256);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(3U, 4U))
      << "the WRITE may pass no READ, but follow one";
}

TEST(rc_requester, fenced__waits_for_reads_and_atomics_only) {
  FakeRig rig({.mtu = 256});
  rig.post(RequestOpcode::write, 1);
  const SendRequest fenced{.id = 2, .opcode = RequestOpcode::write, .fenced = true};
  rig.qp.post_send({&fenced, 1});
  rig.qp.ring(rig.environment.now());
  rig.qp.on_doorbell();
  EXPECT_EQ(rig.environment.pull().size(), 2U) << "no READ is outstanding";
  rig.post(RequestOpcode::read, 1);
  rig.qp.post_send({&fenced, 1});
  rig.qp.ring(rig.environment.now());
  rig.qp.on_doorbell();
  EXPECT_THAT(opcodes(rig.environment.pull()), ElementsAre(Op::read_request));
  rig.hear(response(Op::read_response_only, 2), 1);
  EXPECT_THAT(opcodes(rig.environment.pull()), ElementsAre(Op::write_only));
}

// --- Timers.

TEST(rc_requester, ack_timer__has_one_event_pending_and_moves_with_progress) {
  FakeRig rig({.mtu = 256, .ack_timeout = 1});  // 8.192 us
  const Picoseconds wait = ack_wait(1);
  rig.post(RequestOpcode::write, 1, 1);
  rig.post(RequestOpcode::write, 1, 2);
  rig.environment.pull();
  ASSERT_EQ(rig.environment.timers.size(), 1U);
  EXPECT_EQ(rig.environment.timers[0].second, wait);
  rig.environment.time = microseconds{5};
  rig.hear_ack(0);
  EXPECT_EQ(rig.environment.timers.size(), 1U) << "the pending event serves the new deadline";
  rig.environment.time = wait;
  rig.qp.on_timer(RcTimer::ack);
  EXPECT_EQ(rig.environment.counters().timeouts, 0U);
  ASSERT_EQ(rig.environment.timers.size(), 2U);
  EXPECT_EQ(rig.environment.timers[1].second, microseconds{5} + wait);
  rig.environment.time = microseconds{5} + wait;
  rig.qp.on_timer(RcTimer::ack);
  EXPECT_EQ(rig.environment.counters().timeouts, 1U);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(1U));
}

TEST(rc_requester, rnr_nak__holds_everything_for_its_time) {
  FakeRig rig({.mtu = 256, .rnr_retry = 1});
  rig.post(RequestOpcode::send, 1, 1);
  rig.post(RequestOpcode::write, 1, 2);
  rig.environment.pull();
  rig.hear_ack(0, kSyndromeRnrNak | 5U);
  EXPECT_TRUE(rig.environment.pull().empty());
  ASSERT_EQ(rig.environment.timers.back(), std::pair(RcTimer::rnr, Picoseconds{rnr_wait(5)}));
  // A duplicate of it neither prolongs the wait nor counts as an attempt.
  rig.environment.time = rnr_wait(5) - Picoseconds{1};
  rig.hear_ack(0, kSyndromeRnrNak | 5U);
  EXPECT_TRUE(rig.completions().empty());
  rig.environment.time = rnr_wait(5);
  rig.qp.on_timer(RcTimer::rnr);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(0U, 1U));
  EXPECT_EQ(rig.environment.counters().rnr_naks_rx, 2U);
}

TEST(rc_requester, rnr_nak__is_an_answer_and_renews_the_retries) {
  FakeRig rig({.ack_timeout = 1, .retry_cnt = 1});
  rig.post(RequestOpcode::send, 1, 1);
  rig.environment.pull();
  for (int round = 0; round < 5; ++round) {  // each time one RNR NAK is lost and the next one comes through
    rig.environment.time += ack_wait(1);
    rig.qp.on_timer(RcTimer::ack);
    EXPECT_EQ(rig.environment.pull().size(), 1U);
    rig.hear_ack(0, kSyndromeRnrNak | 1U);
    rig.environment.time += rnr_wait(1);
    rig.qp.on_timer(RcTimer::rnr);
    // The ACK timer's event of before the NAK comes late, and to nothing.
    rig.qp.on_timer(RcTimer::ack);
    EXPECT_EQ(rig.environment.pull().size(), 1U);
  }
  EXPECT_EQ(rig.environment.counters().timeouts, 5U);
  EXPECT_TRUE(rig.completions().empty());
}

// --- The window of PSNs.

TEST(rc_requester, no_more_than_half_the_psns__are_outstanding) {
  // READs of 2^22 PSNs each (1 GiB at MTU 256): two fit the window of 2^23, the third must wait.
  FakeRig rig({.mtu = 256, .rd_atomic_max = 16});
  std::vector<std::byte> unused;
  rig.environment.memory().remove(rig.keys);
  // Registered, never touched: no response comes.
  rig.keys = rig.environment.memory()
                 .add({memory_at(rig.at(0)), std::size_t{1} << 30U}, MemoryAccess::local_write)
                 .value();
  for (std::uint64_t id = 1; id <= 3; ++id) rig.post(RequestOpcode::read, 1U << 30U, id);
  EXPECT_THAT(psns(rig.environment.pull()), ElementsAre(0U, 1U << 22U));
}

}  // namespace
}  // namespace bx::sim
