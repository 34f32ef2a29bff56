// SPDX-License-Identifier: GPL-2.0-only
// The small pieces that queue pairs are made of: PSN arithmetic, encoded times, sizes on the wire, lazy
// timers, tables of numbered objects, queues and the transmit schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/base/rc_timing.h"
#include "sim/model/lazy_timer.h"
#include "sim/model/psn.h"
#include "sim/model/send_queue.h"
#include "sim/model/shared_receive_queue.h"
#include "sim/model/slot_table.h"
#include "sim/model/tx_schedule.h"
#include "sim/model/wire_size.h"
#include "tests/sim/rc_fake.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;

// --- psn.h

TEST(psn, position_near__finds_the_nearest_on_both_sides_of_the_wrap) {
  const std::uint64_t wrap = 1ULL << 24U;
  EXPECT_EQ(position_near(5, wrap + 5), wrap + 5);
  EXPECT_EQ(position_near(0, wrap * 2 - 1), wrap * 2);
  EXPECT_EQ(position_near(kPsnMask, wrap * 2), wrap * 2 - 1);
  EXPECT_EQ(position_near(kPsnMask, first_position(0)), wrap - 1);
  Prng random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t reference = wrap + random.below(wrap * 8);
    const std::uint64_t position = reference - (wrap / 2) + random.below(wrap);
    EXPECT_EQ(position_near(psn_of(position), reference), position);
  }
}

// --- rc_timing.h

TEST(rc_timing, rnr_wait__is_the_standards_table) {
  EXPECT_EQ(rnr_wait(0), microseconds{655'360});
  EXPECT_EQ(rnr_wait(1), microseconds{10});
  EXPECT_EQ(rnr_wait(12), microseconds{640});
  EXPECT_EQ(rnr_wait(14), microseconds{1280});
  EXPECT_EQ(rnr_wait(31), microseconds{491'520});
  for (std::uint8_t code = 2; code < 32; ++code) {
    EXPECT_GT(rnr_wait(code), rnr_wait(static_cast<std::uint8_t>(code - 1)));
  }
}

TEST(rc_timing, ack_wait__doubles_with_each_code) {
  EXPECT_EQ(ack_wait(1), nanoseconds{8192});
  EXPECT_EQ(ack_wait(14), nanoseconds{67'108'864});
  EXPECT_EQ(ack_wait(31), nanoseconds{8'796'093'022'208});  // 2.4 hours
}

// --- wire_size.h

TEST(wire_size, wire_bytes__counts_headers_padding_and_the_minimum) {
  EXPECT_EQ(wire_bytes(BthOpcode::send_only, 0), 84U);  // 82 is under Ethernet's minimum
  EXPECT_EQ(wire_bytes(BthOpcode::send_only, 1), 86U);
  EXPECT_EQ(wire_bytes(BthOpcode::send_middle, 4096), 4178U);
  EXPECT_EQ(wire_bytes(BthOpcode::send_last_imm, 5), 82U + 4 + 8);
  EXPECT_EQ(wire_bytes(BthOpcode::write_first, 1024), 82U + 16 + 1024);
  EXPECT_EQ(wire_bytes(BthOpcode::write_only_imm, 0), 82U + 16 + 4);
  EXPECT_EQ(wire_bytes(BthOpcode::read_request, 0), 98U);
  EXPECT_EQ(wire_bytes(BthOpcode::read_response_only, 16), 82U + 4 + 16);
  EXPECT_EQ(wire_bytes(BthOpcode::read_response_middle, 256), 82U + 256);
  EXPECT_EQ(wire_bytes(BthOpcode::acknowledge, 0), 86U);
  EXPECT_EQ(wire_bytes(BthOpcode::atomic_acknowledge, 0), 94U);
  EXPECT_EQ(wire_bytes(BthOpcode::fetch_add, 0), 110U);
  EXPECT_EQ(wire_bytes(BthOpcode::cnp, 0), 98U);
}

// --- lazy_timer.h

TEST(lazy_timer, deadline__may_move_later_with_one_event_pending) {
  LazyTimer timer;
  std::vector<Picoseconds> events;
  const auto post = [&](Picoseconds when) { events.push_back(when); };
  timer.arm(Picoseconds{10}, post);
  timer.arm(Picoseconds{15}, post);
  EXPECT_THAT(events, ElementsAre(Picoseconds{10}));
  EXPECT_FALSE(timer.expired(Picoseconds{10}, post));
  EXPECT_THAT(events, ElementsAre(Picoseconds{10}, Picoseconds{15}));
  EXPECT_TRUE(timer.expired(Picoseconds{15}, post));
  EXPECT_FALSE(timer.armed());
}

TEST(lazy_timer, disarmed__its_event_comes_to_nothing_and_is_used_again) {
  LazyTimer timer;
  std::vector<Picoseconds> events;
  const auto post = [&](Picoseconds when) { events.push_back(when); };
  timer.arm(Picoseconds{10}, post);
  timer.disarm();
  timer.arm(Picoseconds{20}, post);
  EXPECT_EQ(events.size(), 1U);
  timer.disarm();
  EXPECT_FALSE(timer.expired(Picoseconds{10}, post));
  EXPECT_EQ(events.size(), 1U);
}

TEST(lazy_timer, deadline__may_move_before_the_pending_event_which_is_then_void) {
  LazyTimer timer;
  std::vector<Picoseconds> events;
  const auto post = [&](Picoseconds when) { events.push_back(when); };
  timer.arm(Picoseconds{30}, post);
  timer.arm(Picoseconds{20}, post);
  EXPECT_THAT(events, ElementsAre(Picoseconds{30}, Picoseconds{20}));
  EXPECT_TRUE(timer.expired(Picoseconds{20}, post));
  timer.arm(Picoseconds{40}, post);
  EXPECT_FALSE(timer.expired(Picoseconds{30}, post));  // the first event
  EXPECT_TRUE(timer.armed());
  EXPECT_EQ(events.size(), 3U);
  EXPECT_TRUE(timer.expired(Picoseconds{40}, post));
}

// --- slot_table.h

TEST(slot_table, find__knows_the_living_only) {
  SlotTable<std::uint32_t> table(2);
  const auto make = [](std::uint32_t number) { return std::make_unique<std::uint32_t>(number); };
  const std::uint32_t a = table.emplace(make);
  const std::uint32_t b = table.emplace(make);
  EXPECT_EQ(a, 2U) << "0 and 1 are reserved";
  EXPECT_EQ(*table.find(b), b);
  table.erase(a);
  EXPECT_EQ(table.find(a), nullptr);
  const std::uint32_t c = table.emplace(make);
  EXPECT_EQ(c & 0xffffU, a & 0xffffU);
  EXPECT_NE(c, a);
  EXPECT_EQ(table.find(a), nullptr);
  std::vector<std::uint32_t> all;
  table.for_each([&](std::uint32_t number) { all.push_back(number); });
  EXPECT_THAT(all, ElementsAre(c, b));
  EXPECT_DEATH(table.erase(a), "destroyed twice");
}

TEST(slot_table, emplace__lets_slots_rest) {
  SlotTable<int> table;
  const auto make = [](std::uint32_t /*number*/) { return std::make_unique<int>(0); };
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 3; ++i) {
    table.emplace([&](std::uint32_t number) {
      numbers.push_back(number);
      return make(number);
    });
  }
  for (const std::uint32_t number : numbers) table.erase(number);
  table.emplace([&](std::uint32_t number) {
    EXPECT_EQ(number & 0xffffU, numbers[0]) << "the one that was freed first";
    return make(number);
  });
}

// --- send_queue.h

TEST(send_queue, slots__are_free_when_a_completion_was_polled) {
  BlockPool blocks;
  SendQueue queue(blocks, {.depth = 3, .segments_max = 1});
  for (int i = 0; i < 3; ++i) queue.push({});
  EXPECT_TRUE(queue.full());
  queue.free_through(1, 1);  // index 1 is not complete: a stale completion of an earlier life
  EXPECT_TRUE(queue.full());
  queue.free_through(1, 2);  // 0 was not signalled
  EXPECT_FALSE(queue.full());
  queue.push({});
  queue.push({});
  EXPECT_TRUE(queue.full());
  queue.free_through(0, 4);  // long free
  EXPECT_TRUE(queue.full());
  queue.clear();
  EXPECT_FALSE(queue.full());
  EXPECT_EQ(queue.rung(), queue.tail());
}

TEST(send_queue, limits__are_checked) {
  BlockPool blocks;
  SendQueue queue(blocks, {.depth = 1, .segments_max = 1, .inline_max = 4});
  const std::vector<std::byte> bytes(8);
  const Segment segment{reinterpret_cast<std::uintptr_t>(bytes.data()), 5, 0};
  const std::vector<Segment> two(2, segment);
  EXPECT_DEATH(queue.push({.segments = two}), "more segments");
  EXPECT_DEATH(queue.push({.segments = {&segment, 1}, .inlined = true}), "more inline bytes");
}

// --- shared_receive_queue.h

TEST(shared_receive_queue, post__takes_a_prefix_and_take_is_first_in_first_out) {
  FakeEnvironment environment;
  SharedReceiveQueue queue(environment, 1, 3, 2);
  const std::vector<Segment> segments{{1, 2, 3}, {4, 5, 6}};
  std::vector<ReceiveRequest> requests;
  for (std::uint64_t id = 0; id < 5; ++id) requests.push_back({id, segments});
  EXPECT_EQ(queue.post(requests), 3U);
  EXPECT_TRUE(queue.empty()) << "the doorbell has not rung";
  queue.ring();
  EXPECT_EQ(queue.take().id, 0U);
  EXPECT_EQ(queue.post(std::span(requests).subspan(3)), 1U);
  const auto second = queue.take();
  EXPECT_EQ(second.id, 1U);
  ASSERT_EQ(second.segments.size(), 2U);
  EXPECT_EQ(second.segments[1].addr, 4U);
  EXPECT_EQ(queue.take().id, 2U);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_DEATH(queue.take(), "empty queue");
}

// --- tx_schedule.h

class FakeSource final : public TxSource {
 public:
  FakeSource(FramePool& pool, std::uint32_t number, std::uint8_t priority, TxClass tx_class, int frames)
      : pool_(pool), number_(number), class_(tx_class), left_(frames) {
    priority_ = priority;
  }
  [[nodiscard]] TxClass tx_class() const noexcept override { return left_ > 0 ? class_ : TxClass::nothing; }
  Frame* produce() override {
    if (left_ == 0) return nullptr;
    --left_;
    Frame* frame = pool_.make();
    frame->psn = number_;
    return frame;
  }
  void become(TxClass tx_class) { class_ = tx_class; }

 private:
  FramePool& pool_;
  std::uint32_t number_;
  TxClass class_;
  int left_;
};

std::vector<std::uint32_t> drain(FramePool& pool, TxSchedule& schedule, std::uint8_t paused = 0) {
  std::vector<std::uint32_t> order;
  while (Frame* frame = schedule.next(paused)) {
    order.push_back(frame->psn);
    pool.free(frame);
  }
  return order;
}

TEST(tx_schedule, sources__take_turns_of_a_quantum) {
  FramePool pool;
  for (const auto& [quantum, expected] :
       {std::pair<std::uint32_t, std::vector<std::uint32_t>>{1, {1, 2, 3, 1, 2, 3, 1, 3}},
        {2, {1, 1, 2, 2, 3, 3, 1, 3}}}) {
    TxSchedule schedule(quantum);
    FakeSource a(pool, 1, 3, TxClass::data, 3);
    FakeSource b(pool, 2, 3, TxClass::data, 2);
    FakeSource c(pool, 3, 3, TxClass::data, 3);
    for (FakeSource* source : {&a, &b, &c, &a}) schedule.add(*source);
    EXPECT_EQ(drain(pool, schedule), expected);
    EXPECT_TRUE(schedule.empty());
  }
}

TEST(tx_schedule, control__goes_first_and_priorities_take_turns) {
  FramePool pool;
  TxSchedule schedule(1);
  FakeSource a(pool, 1, 3, TxClass::data, 2);
  FakeSource b(pool, 2, 5, TxClass::data, 2);
  FakeSource c(pool, 3, 5, TxClass::control, 1);
  for (FakeSource* source : {&a, &b, &c}) schedule.add(*source);
  EXPECT_THAT(drain(pool, schedule), ElementsAre(3U, 1U, 2U, 1U, 2U));
}

TEST(tx_schedule, paused_priorities__wait_and_are_not_forgotten) {
  FramePool pool;
  TxSchedule schedule(1);
  FakeSource a(pool, 1, 3, TxClass::data, 1);
  FakeSource b(pool, 2, 5, TxClass::control, 1);
  schedule.add(a);
  schedule.add(b);
  EXPECT_THAT(drain(pool, schedule, 1U << 5U), ElementsAre(1U));
  EXPECT_FALSE(schedule.empty());
  EXPECT_THAT(drain(pool, schedule), ElementsAre(2U));
}

TEST(tx_schedule, source__that_changes_class_changes_its_place) {
  FramePool pool;
  TxSchedule schedule(1);
  FakeSource a(pool, 1, 3, TxClass::data, 3);
  FakeSource b(pool, 2, 3, TxClass::data, 2);
  schedule.add(a);
  schedule.add(b);
  a.become(TxClass::control);
  EXPECT_THAT(drain(pool, schedule), ElementsAre(1U, 1U, 1U, 2U, 2U));
}

TEST(tx_schedule, source__that_is_gone_leaves_no_trace) {
  FramePool pool;
  TxSchedule schedule(1);
  {
    FakeSource a(pool, 1, 3, TxClass::data, 3);
    schedule.add(a);
  }
  EXPECT_EQ(schedule.next(0), nullptr);
  EXPECT_TRUE(schedule.empty());
}

}  // namespace
}  // namespace bx::sim
