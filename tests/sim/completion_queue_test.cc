// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/completion_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/sim/rc_fake.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Picoseconds kWriteBack = nanoseconds{300};

struct CountingListener final : CompletionListener {
  void on_wake(CompletionQueue& /*cq*/) override { ++wakes; }
  int wakes = 0;
};

struct Fixture {
  explicit Fixture(std::uint32_t depth = 8) : cq(environment, 3, depth, kWriteBack, &listener) {}
  std::size_t poll() {
    std::array<WorkCompletion, 16> out;
    return cq.poll(out);
  }
  FakeEnvironment environment;
  CountingListener listener;
  CompletionQueue cq;
};

TEST(completion_queue, poll__shows_a_completion_when_it_is_written_back) {
  Fixture f;
  f.cq.push_receive({.id = 1});
  EXPECT_EQ(f.cq.size(), 1U);
  f.environment.time = kWriteBack - Picoseconds{1};
  EXPECT_EQ(f.poll(), 0U);
  f.environment.time = kWriteBack;
  EXPECT_EQ(f.poll(), 1U);
}

TEST(completion_queue, poll__retires_send_entries_only) {
  Fixture f;
  f.cq.push_send({.id = 1}, 41);
  f.cq.push_receive({.id = 2});
  f.environment.time = kWriteBack;
  EXPECT_EQ(f.poll(), 2U);
  EXPECT_THAT(f.environment.retired, ElementsAre(41U));
}

TEST(completion_queue, arm__wakes_once_when_the_first_completion_is_visible) {
  Fixture f;
  EXPECT_TRUE(f.cq.arm(ArmFor::any));
  f.environment.time = nanoseconds{50};
  f.cq.push_receive({});
  f.environment.time = nanoseconds{60};
  f.cq.push_receive({});
  ASSERT_THAT(f.environment.wakes, ElementsAre(Pair(1U, nanoseconds{350})));
  f.environment.time = nanoseconds{350};
  f.cq.on_wake(1);
  EXPECT_EQ(f.listener.wakes, 1);
  f.cq.on_wake(1);
  EXPECT_EQ(f.listener.wakes, 1) << "at most one an arm";
}

TEST(completion_queue, arm__says_pending_only_for_what_can_be_polled) {
  Fixture f;
  f.cq.push_receive({});
  EXPECT_TRUE(f.cq.arm(ArmFor::any)) << "not visible yet";
  EXPECT_THAT(f.environment.wakes.back(), Pair(1U, kWriteBack));
  f.environment.time = kWriteBack;
  EXPECT_FALSE(f.cq.arm(ArmFor::any));
}

TEST(completion_queue, arm__again_voids_the_wake_up_of_the_first) {
  Fixture f;
  f.cq.arm(ArmFor::any);
  f.cq.push_receive({});
  f.cq.arm(ArmFor::any);
  f.environment.time = kWriteBack;
  f.cq.on_wake(1);
  EXPECT_EQ(f.listener.wakes, 0);
  f.cq.on_wake(2);
  EXPECT_EQ(f.listener.wakes, 1);
}

TEST(completion_queue, arm_for_solicited__wakes_for_those_and_for_errors) {
  for (const bool error : {false, true}) {
    Fixture f;
    f.cq.arm(ArmFor::solicited);
    f.cq.push_receive({});
    EXPECT_THAT(f.environment.wakes, ElementsAre(Pair(0U, kWriteBack))) << "the event of a queue that waits";
    f.environment.time = nanoseconds{10};
    f.cq.push_receive(
        {.status = error ? CompletionStatus::flushed : CompletionStatus::success, .solicited = !error});
    EXPECT_THAT(f.environment.wakes.back(), Pair(1U, nanoseconds{310}));
  }
}

TEST(completion_queue, event__is_pending_while_a_completion_is_on_its_way) {
  Fixture f;
  f.cq.push_receive({});
  f.environment.time = nanoseconds{100};
  f.cq.push_receive({});
  ASSERT_THAT(f.environment.wakes, ElementsAre(Pair(0U, kWriteBack))) << "one for both";
  f.environment.time = kWriteBack;
  f.cq.on_wake(0);
  EXPECT_THAT(f.environment.wakes.back(), Pair(0U, nanoseconds{400})) << "until the last is visible";
  f.environment.time = nanoseconds{400};
  f.cq.on_wake(0);
  EXPECT_EQ(f.environment.wakes.size(), 2U);
  EXPECT_EQ(f.listener.wakes, 0);
}

TEST(completion_queue, overrun__is_told_once_and_takes_nothing_more) {
  Fixture f(2);
  for (std::uint64_t id = 0; id < 4; ++id) f.cq.push_receive({.id = id});
  EXPECT_TRUE(f.cq.overrun());
  EXPECT_THAT(f.environment.raised, ElementsAre(Pair(NicEventKind::cq_overrun, 3U)));
  f.environment.time = kWriteBack;
  EXPECT_EQ(f.poll(), 2U) << "what was there can still be polled";
  f.cq.push_receive({});
  EXPECT_EQ(f.cq.size(), 0U);
}

}  // namespace
}  // namespace bx::sim
