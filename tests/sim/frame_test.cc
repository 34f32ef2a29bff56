// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/frame.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace bx::sim {
namespace {

TEST(FramePool, make__a_recycled_frame_is_as_new) {
  FramePool pool;
  Frame* frame = pool.make();
  frame->psn = 7;
  frame->kind = FrameKind::pfc;
  frame->pfc_quanta.fill(9);
  frame->ecn = Ecn::congestion_experienced;
  pool.free(frame);
  Frame* again = pool.make();
  ASSERT_EQ(again, frame);
  EXPECT_EQ(again->next, nullptr);
  EXPECT_EQ(again->psn, 0U);
  EXPECT_EQ(again->kind, FrameKind::roce);
  EXPECT_EQ(again->pfc_quanta[7], 0U);
  EXPECT_EQ(again->ecn, Ecn::not_capable);
  pool.free(again);
}

TEST(FramePool, make__frames_and_payloads_are_distinct_across_slabs) {
  FramePool pool;
  std::set<Frame*> frames;
  std::set<Payload*> payloads;
  for (int i = 0; i < 1000; ++i) {
    Frame* frame = pool.make();
    frame->payload = pool.make_payload();
    frame->payload->bytes.fill(std::byte{static_cast<unsigned char>(i)});
    frame->psn = static_cast<std::uint32_t>(i);
    EXPECT_TRUE(frames.insert(frame).second);
    EXPECT_TRUE(payloads.insert(frame->payload).second);
  }
  EXPECT_EQ(pool.in_use(), 1000U);
  for (Frame* frame : frames) {
    const std::byte mark{static_cast<unsigned char>(frame->psn)};
    EXPECT_EQ(frame->payload->bytes.front(), mark);
    EXPECT_EQ(frame->payload->bytes.back(), mark);
    pool.free(frame);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(FramePool, free__takes_the_payload_back_with_the_frame) {
  FramePool pool;
  Frame* frame = pool.make();
  frame->payload = pool.make_payload();
  Payload* payload = frame->payload;
  pool.free(frame);
  EXPECT_EQ(pool.make_payload(), payload);
}

TEST(FramePool, reserve__what_was_reserved_is_there) {
  FramePool pool;
  pool.reserve(300, 10);
  Frame* first = pool.make();
  std::vector<Frame*> frames;
  for (int i = 0; i < 300; ++i) frames.push_back(pool.make());
  for (Frame* frame : frames) pool.free(frame);
  pool.free(first);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(FrameQueue, push__first_in_first_out) {
  FramePool pool;
  FrameQueue queue;
  EXPECT_TRUE(queue.empty());
  Frame* a = pool.make();
  Frame* b = pool.make();
  queue.push(a);
  queue.push(b);
  EXPECT_EQ(queue.front(), a);
  EXPECT_EQ(queue.pop(), a);
  EXPECT_EQ(a->next, nullptr);
  queue.push(a);
  EXPECT_EQ(queue.pop(), b);
  EXPECT_EQ(queue.pop(), a);
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace bx::sim
