// SPDX-License-Identifier: GPL-2.0-only
// The responder alone: which packets it takes, and what it answers, in which order.
#include "sim/model/rc_responder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/sim/rc_fake.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::Pair;
using Op = BthOpcode;

constexpr RcPath kPath{.mtu = 256, .min_rnr_timer = 9, .rd_atomic_dest_max = 2};

Frame request(Op opcode, std::uint32_t psn) {
  Frame frame;
  frame.opcode = opcode;
  frame.psn = psn;
  frame.ack_req = true;
  return frame;
}
Frame write_request(const FakeRig& rig, Op opcode, std::uint32_t psn, std::uint32_t length) {
  Frame frame = request(opcode, psn);
  frame.va = rig.at(0);
  frame.rkey = rig.keys.rkey;
  frame.dma_length = length;
  return frame;
}
void post_receive(FakeRig& rig, std::uint32_t length) {
  const Segment segment{rig.at(4096), length, rig.keys.lkey};
  const ReceiveRequest receive{7, {&segment, 1}};
  rig.srq.post({&receive, 1});
  rig.srq.ring();
}

// What was answered: opcode, PSN and, of an ACK or NAK, the syndrome.
using Answer = std::tuple<Op, std::uint32_t, int>;
std::vector<Answer> answers(FakeRig& rig) {
  std::vector<Answer> out;
  for (const Frame& f : rig.environment.pull()) out.emplace_back(f.opcode, f.psn, f.syndrome);
  return out;
}
Answer ack(std::uint32_t psn) {
  return {Op::acknowledge, psn, kSyndromeAck};
}
Answer nak(std::uint32_t psn, int syndrome) {
  return {Op::acknowledge, psn, syndrome};
}

// --- The order of packets within a message.

TEST(rc_responder, packets_out_of_their_place__are_invalid_requests) {
  struct Case {
    std::vector<std::pair<Op, std::uint32_t>> packets;  // with their payload; the last one is at fault
  };
  const std::vector<Case> cases{
      {{{Op::send_middle, 256}}},
      {{{Op::send_last, 1}}},
      {{{Op::write_last, 1}}},
      {{{Op::send_first, 256}, {Op::send_first, 256}}},
      {{{Op::send_first, 256}, {Op::send_only, 1}}},
      {{{Op::send_first, 256}, {Op::write_middle, 256}}},
      {{{Op::send_first, 256}, {Op::read_request, 0}}},
      {{{Op::send_first, 256}, {Op::fetch_add, 0}}},
      {{{Op::send_first, 255}}},  // First and Middle are full
      {{{Op::send_only, 257}}},   // more than the MTU
      {{{Op::send_first, 256}, {Op::send_middle, 100}}},
      {{{Op::send_first, 256}, {Op::send_last, 0}}},
      {{{Op::write_first, 256}, {Op::write_last, 100}}},                             // shorter than announced
      {{{Op::write_first, 256}, {Op::write_middle, 256}, {Op::write_middle, 256}}},  // longer
  };
  for (const Case& c : cases) {
    FakeRig rig(kPath);
    post_receive(rig, 4096);
    std::uint32_t psn = 0;
    for (const auto& [opcode, payload] : c.packets) {
      rig.hear(write_request(rig, opcode, psn++, 512), payload);
    }
    EXPECT_THAT(answers(rig), ElementsAre(nak(psn - 1, kSyndromeInvalidRequest)));
    EXPECT_EQ(rig.qp.state(), QpState::error);
    EXPECT_THAT(rig.environment.raised, ElementsAre(Pair(NicEventKind::qp_request_error, rig.qp.number()),
                                                    Pair(NicEventKind::last_wqe_reached, rig.qp.number())));
  }
}

TEST(rc_responder, message__completes_with_its_last_packet) {
  FakeRig rig(kPath);
  post_receive(rig, 600);
  rig.hear(request(Op::send_first, 0), 256);
  rig.hear(request(Op::send_middle, 1), 256);
  EXPECT_TRUE(rig.completions().empty());
  EXPECT_TRUE(rig.qp.responder().busy());
  Frame last = request(Op::send_last_imm, 2);
  last.imm = 5;
  rig.hear(last, 88);
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].byte_len, 600U);
  EXPECT_EQ(done[0].imm, 5U);
  EXPECT_THAT(answers(rig), ElementsAre(ack(2)));
}

// --- Acknowledgements coalesce.

TEST(rc_responder, ack__that_has_not_left_covers_what_came_meanwhile) {
  FakeRig rig(kPath);
  for (std::uint32_t psn = 0; psn < 5; ++psn) rig.hear(write_request(rig, Op::write_only, psn, 1), 1);
  EXPECT_THAT(answers(rig), ElementsAre(ack(4)));
  EXPECT_EQ(rig.environment.counters().acks_tx, 1U);
}

TEST(rc_responder, packet_that_asks_for_none__gets_none) {
  FakeRig rig(kPath);
  Frame quiet = write_request(rig, Op::write_first, 0, 512);
  quiet.ack_req = false;
  rig.hear(quiet, 256);
  EXPECT_TRUE(answers(rig).empty());
}

TEST(rc_responder, msn__counts_messages) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::write_first, 0, 300), 256);
  EXPECT_EQ(rig.environment.pull()[0].msn, 0U);
  rig.hear(write_request(rig, Op::write_last, 1, 300), 44);
  EXPECT_EQ(rig.environment.pull()[0].msn, 1U);
}

// --- Gaps and duplicates.

TEST(rc_responder, gap__is_told_once_until_it_is_filled) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::write_only, 1, 1), 1);
  rig.hear(write_request(rig, Op::write_only, 2, 1), 1);
  EXPECT_THAT(answers(rig), ElementsAre(nak(0, kSyndromeSequenceNak)));
  rig.hear(write_request(rig, Op::write_only, 3, 1), 1);
  EXPECT_TRUE(answers(rig).empty());
  rig.hear(write_request(rig, Op::write_only, 0, 1), 1);
  rig.hear(write_request(rig, Op::write_only, 2, 1), 1);
  EXPECT_THAT(answers(rig), ElementsAre(nak(1, kSyndromeSequenceNak))) << "and covers the ACK of 0";
  EXPECT_EQ(rig.environment.counters().packets_out_of_order, 4U);
}

TEST(rc_responder, nak__that_has_not_left_is_void_once_the_packet_is_here) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::write_only, 1, 1), 1);
  rig.hear(write_request(rig, Op::write_only, 0, 1), 1);
  EXPECT_THAT(answers(rig), ElementsAre(ack(0)));
  rig.hear(request(Op::send_only, 1));
  post_receive(rig, 1);
  rig.hear(request(Op::send_only, 1));
  EXPECT_THAT(answers(rig), ElementsAre(ack(1)));
}

TEST(rc_responder, duplicate_write__is_acknowledged_and_not_executed) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::write_only, 0, 4), 4);
  answers(rig);
  rig.memory[0] = std::byte{9};
  rig.hear(write_request(rig, Op::write_only, 0, 4), 4);
  EXPECT_THAT(answers(rig), ElementsAre(ack(0)));
  EXPECT_EQ(rig.memory[0], std::byte{9});
  EXPECT_EQ(rig.environment.counters().packets_duplicate, 1U);
}

TEST(rc_responder, duplicate_send__consumes_no_second_receive) {
  FakeRig rig(kPath);
  post_receive(rig, 8);
  post_receive(rig, 8);
  rig.hear(request(Op::send_only, 0), 8);
  rig.hear(request(Op::send_only, 0), 8);
  EXPECT_EQ(rig.completions().size(), 1U);
  EXPECT_EQ(rig.srq.size(), 1U);
}

TEST(rc_responder, duplicate_atomic__gets_the_saved_result) {
  FakeRig rig(kPath);
  Frame add = write_request(rig, Op::fetch_add, 0, 0);
  add.swap_add = 3;
  rig.hear(add);
  rig.environment.pull();
  rig.hear(add);
  const auto again = rig.environment.pull();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].opcode, Op::atomic_acknowledge);
  EXPECT_EQ(again[0].atomic_original, 0U);
  std::uint64_t value = 0;
  std::memcpy(&value, rig.memory.data(), 8);
  EXPECT_EQ(value, 3U) << "added once";
  // Two more push the result out of the table of two: the duplicate is dropped, not executed.
  for (std::uint32_t psn = 1; psn <= 2; ++psn) {
    add.psn = psn;
    rig.hear(add);
  }
  rig.environment.pull();
  add.psn = 0;
  rig.hear(add);
  EXPECT_TRUE(rig.environment.pull().empty());
}

// --- Receives.

TEST(rc_responder, no_receive__is_rnr_and_what_follows_is_passed_over_in_silence) {
  FakeRig rig(kPath);
  rig.hear(request(Op::send_only, 0), 8);
  rig.hear(request(Op::send_only, 1), 8);
  EXPECT_THAT(answers(rig), ElementsAre(nak(0, kSyndromeRnrNak | 9)));
  post_receive(rig, 8);
  rig.hear(request(Op::send_only, 0), 8);
  EXPECT_THAT(answers(rig), ElementsAre(ack(0)));
}

TEST(rc_responder, write_with_imm__takes_its_receive_with_the_packet_that_has_the_imm) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::write_first, 0, 300), 256);
  EXPECT_THAT(answers(rig), ElementsAre(ack(0)));
  rig.hear(write_request(rig, Op::write_last_imm, 1, 300), 44);
  EXPECT_THAT(answers(rig), ElementsAre(nak(1, kSyndromeRnrNak | 9)));
  post_receive(rig, 0);
  rig.hear(write_request(rig, Op::write_last_imm, 1, 300), 44);
  EXPECT_THAT(answers(rig), ElementsAre(ack(1)));
  const auto done = rig.completions();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].opcode, CompletionOpcode::recv_write_imm);
  EXPECT_EQ(done[0].byte_len, 300U);
}

TEST(rc_responder, posted_receive__is_seen_after_its_doorbell) {
  FakeRig rig(kPath);
  const ReceiveRequest receive{7, {}};
  rig.srq.post({&receive, 1});
  rig.hear(request(Op::send_only, 0));
  EXPECT_THAT(answers(rig), ElementsAre(nak(0, kSyndromeRnrNak | 9)));
  rig.srq.ring();
  rig.hear(request(Op::send_only, 0));
  EXPECT_THAT(answers(rig), ElementsAre(ack(0)));
}

// --- READ responses.

TEST(rc_responder, answers__leave_in_psn_order) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::write_only, 0, 1), 1);
  rig.hear(write_request(rig, Op::read_request, 1, 600));  // 1, 2, 3
  rig.hear(write_request(rig, Op::fetch_add, 4, 0));
  rig.hear(write_request(rig, Op::write_only, 5, 1), 1);
  rig.hear(write_request(rig, Op::write_only, 7, 1), 1);  // a gap
  EXPECT_THAT(answers(rig),
              ElementsAre(Answer{Op::read_response_first, 1, kSyndromeAck},
                          Answer{Op::read_response_middle, 2, kSyndromeAck},
                          Answer{Op::read_response_last, 3, kSyndromeAck},
                          Answer{Op::atomic_acknowledge, 4, kSyndromeAck}, nak(6, kSyndromeSequenceNak)))
      << "the first response covers the WRITE before it, the NAK the one after";
}

TEST(rc_responder, read__of_nothing_has_one_empty_response_and_needs_no_key) {
  FakeRig rig(kPath);
  Frame read = request(Op::read_request, 0);
  rig.hear(read);
  const auto frames = rig.environment.pull();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].opcode, Op::read_response_only);
  EXPECT_EQ(frames[0].payload_bytes, 0U);
}

TEST(rc_responder, duplicate_read__replaces_the_answers_from_there_on) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::read_request, 0, 600));  // 0, 1, 2
  Frame* first = rig.qp.responder().produce();
  rig.environment.pool.free(first);
  Frame again = write_request(rig, Op::read_request, 1, 344);  // the rest
  again.va += 256;
  rig.hear(again);
  EXPECT_THAT(answers(rig), ElementsAre(Answer{Op::read_response_first, 1, kSyndromeAck},
                                        Answer{Op::read_response_last, 2, kSyndromeAck}));
}

TEST(rc_responder, repeated_answer__makes_room_for_a_new_one) {
  // The ring holds two. A duplicate READ that was late in the network occupies one; the two new ones must not
  // be refused for it.
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::read_request, 0, 1));
  rig.environment.pull();
  rig.hear(write_request(rig, Op::read_request, 0, 1));
  rig.hear(write_request(rig, Op::read_request, 1, 1));
  rig.hear(write_request(rig, Op::read_request, 2, 1));
  EXPECT_EQ(rig.qp.state(), QpState::ready_to_send);
  EXPECT_THAT(answers(rig), ElementsAre(Answer{Op::read_response_only, 1, kSyndromeAck},
                                        Answer{Op::read_response_only, 2, kSyndromeAck}));
  rig.hear(write_request(rig, Op::read_request, 3, 1));
  rig.hear(write_request(rig, Op::read_request, 4, 1));
  rig.hear(write_request(rig, Op::read_request, 5, 1));
  EXPECT_EQ(rig.qp.state(), QpState::error) << "three new ones are one too many";
}

TEST(rc_responder, to_error__drops_answers_unless_they_are_last_words) {
  FakeRig rig(kPath);
  rig.hear(write_request(rig, Op::read_request, 0, 600));
  rig.qp.to_error();
  EXPECT_TRUE(answers(rig).empty());
  FakeRig faulted(kPath);
  faulted.hear(write_request(faulted, Op::read_request, 0, 1));
  Frame bad = write_request(faulted, Op::write_only, 1, 1);
  bad.rkey ^= 1U;
  faulted.hear(bad, 1);
  EXPECT_EQ(faulted.qp.state(), QpState::error);
  EXPECT_THAT(answers(faulted),
              ElementsAre(Answer{Op::read_response_only, 0, kSyndromeAck}, nak(1, kSyndromeRemoteAccess)));
}

}  // namespace
}  // namespace bx::sim
