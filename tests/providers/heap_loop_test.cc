// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/heap_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "libbx/base/prng.h"
#include "tests/support/allocation_guard.h"

namespace bx::loopback {
namespace {

using fabric::RunEnd;

Instant at(std::int64_t ns) {
  return Instant{Duration{ns}};
}

struct Record {
  std::int64_t time;
  std::uint64_t tag;
  friend bool operator==(const Record&, const Record&) = default;
};

// Public members: events are plain functions that reach into it.
class HeapLoopTest : public testing::Test {
 public:
  void post(std::int64_t delay, std::uint64_t tag) {
    loop.post(
        Duration{delay},
        [](void* self, void* argument) {
          auto& test = *static_cast<HeapLoopTest*>(self);
          test.ran.push_back(
              {test.loop.now().time_since_epoch().count(), reinterpret_cast<std::uintptr_t>(argument)});
        },
        this, reinterpret_cast<void*>(tag));
  }
  HeapLoop loop;
  std::vector<Record> ran;
};

TEST_F(HeapLoopTest, post__runs_in_the_order_of_time_then_of_posting) {
  Prng prng(1);
  std::vector<Record> expected;
  for (std::uint64_t tag = 0; tag < 1000; ++tag) {
    const auto delay = static_cast<std::int64_t>(prng.below(50));
    expected.push_back({delay, tag});
    post(delay, tag);
  }
  std::ranges::stable_sort(expected, {}, &Record::time);
  EXPECT_EQ(loop.run(kNever), RunEnd::idle);
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(loop.executed(), 1000U);
}

TEST_F(HeapLoopTest, post__from_an_event_for_now_runs_in_the_same_run) {
  loop.post(
      Duration{5}, [](void* self, void*) { static_cast<HeapLoopTest*>(self)->post(0, 9); }, this, nullptr);
  post(5, 1);
  loop.run(at(5));
  EXPECT_EQ(ran, (std::vector<Record>{{5, 1}, {5, 9}}));
}

TEST_F(HeapLoopTest, run__stops_at_its_limit_which_it_includes) {
  post(10, 1);
  post(20, 2);
  EXPECT_EQ(loop.run(at(9)), RunEnd::limit);
  EXPECT_EQ(loop.now(), at(9));
  EXPECT_TRUE(ran.empty());
  EXPECT_EQ(loop.run(at(10)), RunEnd::limit);
  EXPECT_EQ(ran.size(), 1U);
  EXPECT_EQ(loop.run(at(5)), RunEnd::limit);  // time never goes back
  EXPECT_EQ(loop.now(), at(10));
  EXPECT_EQ(loop.run(kNever), RunEnd::idle);
  EXPECT_EQ(loop.now(), at(20));
}

TEST_F(HeapLoopTest, stop__ends_the_run_in_progress_only) {
  loop.stop();
  post(1, 1);
  loop.post(
      Duration{2}, [](void* self, void*) { static_cast<HeapLoopTest*>(self)->loop.stop(); }, this, nullptr);
  post(3, 3);
  EXPECT_EQ(loop.run(kNever), RunEnd::stopped);
  EXPECT_EQ(ran, (std::vector<Record>{{1, 1}}));
  EXPECT_EQ(loop.run(kNever), RunEnd::idle);
  EXPECT_EQ(ran.size(), 2U);
}

TEST_F(HeapLoopTest, post__allocates_nothing_within_the_reserve) {
  loop.reserve_more(100);
  ran.reserve(1000);
  const test::AllocationCount count;
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t tag = 0; tag < 100; ++tag) post(1, tag);
    loop.run(kNever);
  }
  EXPECT_EQ(count.since(), 0U);
}

using HeapLoopDeathTest = HeapLoopTest;

TEST_F(HeapLoopDeathTest, misuse__is_a_programming_error) {
  EXPECT_DEATH(post(-1, 0), "into the past");
  loop.post(
      Duration{0}, [](void* self, void*) { static_cast<HeapLoopTest*>(self)->loop.run(kNever); }, this,
      nullptr);
  EXPECT_DEATH(loop.run(kNever), "inside an event");
}

}  // namespace
}  // namespace bx::loopback
