// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/timing_wheel.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "libbx/base/prng.h"

namespace bx::sim {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kBucketPs = 2048;
constexpr std::uint64_t kTurnPs = kBucketPs * 8192;  // how far the wheel reaches

Event at(std::uint64_t time, std::uint64_t sequence, void* argument = nullptr) {
  return {.time = time, .sequence = sequence, .argument = argument};
}

bool pop(TimingWheel& wheel, std::uint64_t limit, Event& out) {
  const Event* event = wheel.pop_until(limit);
  if (event != nullptr) out = *event;
  return event != nullptr;
}

std::vector<std::uint64_t> drain(TimingWheel& wheel) {
  std::vector<std::uint64_t> sequences;
  Event event;
  while (pop(wheel, kNoLimit, event)) sequences.push_back(event.sequence);
  return sequences;
}

using Sequences = std::vector<std::uint64_t>;

TEST(TimingWheel, insert__equal_times_leave_in_order_of_sequence) {
  TimingWheel wheel;
  for (std::uint64_t i = 0; i < 100; ++i) wheel.insert(at(5000, i));
  const Sequences order = drain(wheel);
  ASSERT_EQ(order.size(), 100U);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(TimingWheel, insert__keeps_all_fields) {
  TimingWheel wheel;
  int object = 0;
  int argument = 0;
  const EventFn fn = [](void*, void*) {};
  wheel.insert({7, 1ULL << 40U, fn, &object, &argument, 99});
  Event event;
  ASSERT_TRUE(pop(wheel, kNoLimit, event));
  EXPECT_EQ(event.time, 7U);
  EXPECT_EQ(event.sequence, 1ULL << 40U);
  EXPECT_EQ(event.fn, fn);
  EXPECT_EQ(event.object, &object);
  EXPECT_EQ(event.argument, &argument);
  EXPECT_EQ(event.context, 99U);
}

TEST(TimingWheel, insert__far_times_wait_in_the_heap_and_come_in_order) {
  TimingWheel wheel;
  wheel.insert(at(3 * kTurnPs, 1));
  wheel.insert(at(kTurnPs, 2));
  wheel.insert(at(kTurnPs - 1, 3));
  wheel.insert(at(100 * kTurnPs, 4));
  wheel.insert(at(0, 5));
  EXPECT_EQ(drain(wheel), (Sequences{5, 3, 2, 1, 4}));
}

TEST(TimingWheel, insert__before_the_bucket_that_was_looked_at) {
  TimingWheel wheel;
  const std::uint64_t far = 40 * kTurnPs + 1000;
  wheel.insert(at(far, 1));
  Event event;
  // The limit lies in the far event's bucket: the wheel must open it to see that nothing is due.
  EXPECT_FALSE(pop(wheel, far - 1, event));
  wheel.insert(at(10, 2));
  wheel.insert(at(far - 2, 3));
  wheel.insert(at(far, 4));
  wheel.insert(at(kTurnPs, 5));
  EXPECT_EQ(drain(wheel), (Sequences{2, 5, 3, 1, 4}));
}

TEST(TimingWheel, insert__into_a_bucket_that_has_been_emptied) {
  TimingWheel wheel;
  wheel.insert(at(100, 1));
  Event event;
  ASSERT_TRUE(pop(wheel, kNoLimit, event));
  EXPECT_FALSE(pop(wheel, 5000, event));
  wheel.insert(at(100, 2));
  wheel.insert(at(kBucketPs - 1, 3));
  wheel.insert(at(kBucketPs, 4));
  EXPECT_EQ(drain(wheel), (Sequences{2, 3, 4}));
}

// Few events of a bucket are not sorted: each is looked for, also among those that join meanwhile.
TEST(TimingWheel, pop_until__finds_the_first_of_a_few_in_a_bucket) {
  TimingWheel wheel;
  Sequences order;
  Event event;
  const std::uint64_t start = 3 * kBucketPs;
  wheel.insert(at(start + 500, 1));
  wheel.insert(at(start + 100, 2));
  wheel.insert(at(start + 500, 3));
  ASSERT_TRUE(pop(wheel, kNoLimit, event));
  order.push_back(event.sequence);
  wheel.insert(at(start + 300, 4));
  wheel.insert(at(start + 500, 5));
  for (const std::uint64_t sequence : drain(wheel)) order.push_back(sequence);
  EXPECT_EQ(order, (Sequences{2, 4, 1, 3, 5}));
}

TEST(TimingWheel, pop_until__the_limit_itself_is_due) {
  TimingWheel wheel;
  wheel.insert(at(1000, 1));
  wheel.insert(at(1001, 2));
  Event event;
  EXPECT_FALSE(pop(wheel, 999, event));
  EXPECT_TRUE(pop(wheel, 1000, event));
  EXPECT_EQ(event.sequence, 1U);
  EXPECT_FALSE(pop(wheel, 1000, event));
  EXPECT_EQ(wheel.size(), 1U);
}

// Nine places ahead, and again six and three places ahead; of few events nothing is told.
TEST(TimingWheel, first_time__finds_the_first_wherever_it_waits) {
  TimingWheel wheel;
  EXPECT_EQ(wheel.first_time(), UINT64_MAX);
  std::uint64_t sequence = 0;
  const auto insert = [&](std::uint64_t time) { wheel.insert({.time = time, .sequence = sequence++}); };
  insert(1'000'000'000'000);  // the heap
  EXPECT_EQ(wheel.first_time(), 1'000'000'000'000U);
  for (std::uint64_t i = 0; i < 20; ++i) insert(5000 - i);  // one bucket, the later inserted the earlier
  EXPECT_EQ(wheel.first_time(), 4981U);
  ASSERT_NE(wheel.pop_until(UINT64_MAX), nullptr);  // opens it
  EXPECT_EQ(wheel.first_time(), 4982U);
  insert(10);  // before what was looked at
  EXPECT_EQ(wheel.first_time(), 10U);
  for (int i = 0; i < 20; ++i) ASSERT_NE(wheel.pop_until(UINT64_MAX), nullptr);
  EXPECT_EQ(wheel.first_time(), 1'000'000'000'000U);
}

TEST(TimingWheel, announce_to__tells_of_events_in_a_crowd) {
  using Told = std::array<Sequences, 3>;
  Told told;
  TimingWheel wheel;
  wheel.announce_to([](const Event& event, Approach approach) {
    (*static_cast<Told*>(event.object))[static_cast<std::size_t>(approach)].push_back(event.sequence);
  });
  const auto insert = [&](std::uint64_t time, std::uint64_t sequence) {
    wheel.insert({.time = time, .sequence = sequence, .object = &told});
  };
  for (std::uint64_t i = 0; i < 12; ++i) insert(5000, i);
  for (std::uint64_t i = 12; i < 15; ++i) insert(9000, i);
  EXPECT_EQ(drain(wheel).size(), 15U);
  EXPECT_EQ(told[0], (Sequences{10, 11}));
  EXPECT_EQ(told[1], (Sequences{7, 8, 9, 10, 11}));
  EXPECT_EQ(told[2], (Sequences{4, 5, 6, 7, 8, 9, 10, 11}));
}

// Crowds of all sizes in neighbouring buckets, to which events are added and from which some are taken while
// the crowd before them leaves.
TEST(TimingWheel, pop_until__of_crowds_agrees_with_an_ordered_set) {
  Prng random(1);
  TimingWheel wheel;
  std::set<std::pair<std::uint64_t, std::uint64_t>> model;
  std::uint64_t sequence = 0;
  const auto insert = [&](std::uint64_t time) {
    wheel.insert(at(time, sequence));
    model.emplace(time, sequence++);
  };
  for (std::uint64_t bucket = 3; bucket < 40; ++bucket) {
    const std::uint64_t count = random.below(bucket % 5 == 0 ? 1500 : 60);
    // Few different times or many: ties are the rule where hosts begin together.
    const std::uint64_t step = random.below(2) == 0 ? 1 : 500;
    for (std::uint64_t i = 0; i < count; ++i) {
      insert(bucket * kBucketPs + random.below(kBucketPs / step) * step);
    }
  }
  Event event;
  while (pop(wheel, kNoLimit, event)) {
    ASSERT_FALSE(model.empty());
    ASSERT_EQ(std::make_pair(event.time, event.sequence), *model.begin());
    model.erase(model.begin());
    if (random.below(4) == 0 && sequence < 20'000) insert(event.time + random.below(3 * kBucketPs));
    if (random.below(8) != 0) continue;
    const auto victim = model.lower_bound({event.time + random.below(20 * kBucketPs), 0});
    if (victim == model.end()) continue;
    ASSERT_TRUE(wheel.erase(victim->first, static_cast<std::uint32_t>(victim->second), nullptr));
    model.erase(victim);
  }
  EXPECT_TRUE(model.empty());
}

TEST(TimingWheel, contains__knows_its_events_wherever_they_wait) {
  TimingWheel wheel;
  int a = 0;
  int b = 0;
  Event event;
  wheel.insert(at(1, 1, &a));
  ASSERT_TRUE(pop(wheel, kNoLimit, event));  // opens the first bucket
  const std::vector<std::uint64_t> times = {10, 5 * kBucketPs, 9 * kTurnPs};
  for (const std::uint64_t time : times) wheel.insert(at(time, (1ULL << 33U) + 7, &a));
  for (const std::uint64_t time : times) {
    EXPECT_TRUE(wheel.contains(time, 7, &a)) << time;
    EXPECT_FALSE(wheel.contains(time, 8, &a)) << time;
    EXPECT_FALSE(wheel.contains(time, 7, &b)) << time;
    EXPECT_FALSE(wheel.contains(time + 1, 7, &a)) << time;
  }
}

TEST(TimingWheel, erase__takes_one_event_and_leaves_the_others) {
  TimingWheel wheel;
  Event event;
  wheel.insert(at(1, 1));
  ASSERT_TRUE(pop(wheel, kNoLimit, event));
  Sequences left;
  std::uint64_t sequence = 10;
  for (const std::uint64_t time : {std::uint64_t{10}, 5 * kBucketPs, 9 * kTurnPs}) {
    for (std::uint64_t i = 0; i < 9; ++i) wheel.insert(at(time + i % 3, sequence++));
  }
  for (const std::uint64_t time : {std::uint64_t{10}, 5 * kBucketPs, 9 * kTurnPs}) {
    const std::uint32_t first = time == 10 ? 10 : time == 5 * kBucketPs ? 19 : 28;
    EXPECT_TRUE(wheel.erase(time + 1, first + 4, nullptr));
    EXPECT_FALSE(wheel.erase(time + 1, first + 4, nullptr));
    EXPECT_FALSE(wheel.erase(time + 2, first + 4, nullptr));
    for (const std::uint64_t i : {0, 3, 6, 1, 7, 2, 5, 8}) left.push_back(first + i);
  }
  EXPECT_EQ(wheel.size(), left.size());
  EXPECT_EQ(drain(wheel), left);
}

TEST(TimingWheel, erase__the_last_event_of_a_bucket_leaves_it_empty) {
  TimingWheel wheel;
  wheel.insert(at(5 * kBucketPs, 1));
  wheel.insert(at(6 * kBucketPs, 2));
  EXPECT_TRUE(wheel.erase(5 * kBucketPs, 1, nullptr));
  EXPECT_EQ(drain(wheel), Sequences{2});
  EXPECT_TRUE(wheel.empty());
}

// One seeded walk of inserts, pops and erasures against an ordered set.
class TimingWheelWalk : public testing::TestWithParam<std::uint64_t> {};

TEST_P(TimingWheelWalk, agrees_with_an_ordered_set) {
  Prng random(GetParam());
  TimingWheel wheel;
  std::set<std::pair<std::uint64_t, std::uint64_t>> model;
  std::uint64_t now = 0;
  std::uint64_t sequence = (1ULL << 32U) - 5000;  // crosses 32 bits on the way
  std::vector<std::uint64_t> recent{0};
  const auto random_time = [&]() -> std::uint64_t {
    switch (random.below(8)) {
      case 0:
        return recent[random.below(recent.size())];  // a tie, possibly with the past
      case 1:
        return now;
      case 2:
        return now + random.below(kBucketPs);
      case 3:
      case 4:
        return now + random.below(100 * kBucketPs);
      case 5:
        return now + kTurnPs - kBucketPs + random.below(2 * kBucketPs);  // around the wheel's edge
      case 6:
        return now + random.below(20 * kTurnPs);
      default:
        return random.below(now + 1);  // before what has been popped already
    }
  };
  for (int step = 0; step < 30000; ++step) {
    // Phases that mostly fill and phases that mostly drain.
    const bool filling = (step / 2000) % 2 == 0;
    const std::uint64_t action = random.below(10);
    if (action < (filling ? 6U : 3U)) {
      const std::uint64_t time = random_time();
      if (recent.size() < 64) {
        recent.push_back(time);
      } else {
        recent[random.below(64)] = time;
      }
      wheel.insert(at(time, sequence));
      model.emplace(time, sequence++);
    } else if (action < 9) {
      const std::uint64_t limit = random.below(3) == 0 ? now + random.below(2 * kTurnPs) : kNoLimit;
      Event event;
      const bool due = !model.empty() && model.begin()->first <= limit;
      ASSERT_EQ(pop(wheel, limit, event), due);
      if (due) {
        ASSERT_EQ(event.time, model.begin()->first);
        ASSERT_EQ(event.sequence, model.begin()->second);
        now = std::max(now, event.time);
        model.erase(model.begin());
      } else if (limit != kNoLimit) {
        now = std::max(now, limit);
      }
    } else if (!model.empty()) {
      auto victim = model.lower_bound({random_time(), 0});
      if (victim == model.end()) victim = model.begin();
      const auto low = static_cast<std::uint32_t>(victim->second);
      ASSERT_TRUE(wheel.contains(victim->first, low, nullptr));
      ASSERT_TRUE(wheel.erase(victim->first, low, nullptr));
      ASSERT_FALSE(wheel.contains(victim->first, low, nullptr));
      model.erase(victim);
    }
    ASSERT_EQ(wheel.size(), model.size());
  }
  Event event;
  for (const auto& [time, order] : model) {
    ASSERT_TRUE(pop(wheel, kNoLimit, event));
    ASSERT_EQ(event.time, time);
    ASSERT_EQ(event.sequence, order);
  }
  EXPECT_FALSE(pop(wheel, kNoLimit, event));
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimingWheelWalk, testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace bx::sim
