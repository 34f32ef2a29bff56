// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/fair_queue.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace bx::engine {
namespace {

constexpr std::uint32_t kQuantum = 100;

class FairQueueTest : public ::testing::Test {
 protected:
  ~FairQueueTest() override {
    while (queue_.pop_any() != nullptr) {
    }
  }
  Outgoing& add(std::uint32_t session, std::uint64_t call) {
    Outgoing& made = messages_.emplace_back(wire::MessageHeader{.session = session, .call = call}, Buffer{});
    queue_.push(made);
    return made;
  }
  // Sends all that is left, each message as `bytes`; the calls in the order they went.
  std::vector<std::uint64_t> drain(std::uint64_t bytes) {
    std::vector<std::uint64_t> order;
    while (Outgoing* message = queue_.front()) {
      order.push_back(message->header.call);
      queue_.pop_sent(*message, bytes);
    }
    return order;
  }
  std::deque<Outgoing> messages_;
  FairQueue queue_{FairQueue::kPlaces, kQuantum};
};

using Order = std::vector<std::uint64_t>;

TEST_F(FairQueueTest, front__of_an_empty_queue_is_null) {
  EXPECT_EQ(queue_.front(), nullptr);
  EXPECT_EQ(queue_.pop_any(), nullptr);
}

TEST_F(FairQueueTest, pop_sent__serves_sessions_in_turn_and_each_in_its_order) {
  for (std::uint64_t call = 10; call < 14; ++call) add(1, call);
  for (std::uint64_t call = 20; call < 22; ++call) add(2, call);
  EXPECT_EQ(drain(kQuantum), (Order{10, 20, 11, 21, 12, 13}));
}

TEST_F(FairQueueTest, pop_sent__counts_bytes_and_not_messages) {
  for (std::uint64_t call = 10; call < 13; ++call) add(1, call);
  for (std::uint64_t call = 20; call < 23; ++call) add(2, call);
  EXPECT_EQ(drain(kQuantum / 2), (Order{10, 11, 20, 21, 12, 22}));
}

TEST_F(FairQueueTest, pop_sent__of_more_than_a_quantum_counts_as_one) {
  for (std::uint64_t call = 10; call < 12; ++call) add(1, call);
  for (std::uint64_t call = 20; call < 22; ++call) add(2, call);
  EXPECT_EQ(drain(std::uint64_t{1} << 40U), (Order{10, 20, 11, 21}));
}

TEST_F(FairQueueTest, pop_sent__goes_by_the_weight_in_the_session_id) {
  const std::uint32_t heavy = with_weight(2, 3);  // 2
  for (std::uint64_t call = 10; call < 13; ++call) add(1, call);
  for (std::uint64_t call = 20; call < 24; ++call) add(heavy, call);
  EXPECT_EQ(drain(kQuantum), (Order{10, 20, 21, 11, 22, 23, 12}));
}

TEST_F(FairQueueTest, front__passes_over_what_was_withdrawn) {
  Outgoing& first = add(1, 10);
  Outgoing& only = add(2, 20);
  add(1, 11);
  first.unlink();
  only.unlink();
  EXPECT_EQ(drain(1), (Order{11}));
  add(2, 21);
  EXPECT_EQ(drain(1), (Order{21}));
}

TEST_F(FairQueueTest, step_aside__lets_others_go_until_resume) {
  add(1, 10);
  add(2, 20);
  ASSERT_EQ(queue_.front()->header.call, 10U);
  queue_.step_aside();
  add(1, 11);
  EXPECT_EQ(drain(1), (Order{20}));
  EXPECT_EQ(queue_.front(), nullptr);
  queue_.resume();
  EXPECT_EQ(drain(1), (Order{10, 11}));
}

TEST_F(FairQueueTest, one_place__is_first_in_first_out) {
  FairQueue fifo(1, kQuantum);
  const auto push = [&](std::uint32_t session, std::uint64_t call) {
    fifo.push(messages_.emplace_back(wire::MessageHeader{.session = session, .call = call}, Buffer{}));
  };
  push(1, 10);
  push(with_weight(1, 1024), 11);
  push(2, 20);
  push(1, 12);
  Order order;
  while (Outgoing* message = fifo.front()) {
    order.push_back(message->header.call);
    fifo.pop_sent(*message, 70);
  }
  EXPECT_EQ(order, (Order{10, 11, 20, 12}));
}

TEST(SessionId, weight__is_rounded_down_and_leaves_the_number) {
  EXPECT_EQ(weight_of_session(7), 1U);
  EXPECT_EQ(with_weight(7, 1), 7U);
  for (const auto& [asked, given] : {std::pair{0U, 1U}, {2U, 2U}, {3U, 2U}, {1024U, 1024U}, {5000U, 1024U}}) {
    const std::uint32_t id = with_weight(7, asked);
    EXPECT_EQ(weight_of_session(id), given);
    EXPECT_EQ(with_weight(id, 1), 7U);
    EXPECT_EQ(share_of_session(id, 4), share_of_session(7, 4));
  }
  EXPECT_EQ(weight_of_session(0xffffffff), core::Flow::kWeightMax);  // whatever a peer claims
}

}  // namespace
}  // namespace bx::engine
