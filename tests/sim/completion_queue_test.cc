// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/completion_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

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

TEST(completion_queue, arm_for_solicited__takes_nothing_back_from_any) {
  Fixture f;
  f.cq.arm(ArmFor::any);
  f.cq.arm(ArmFor::solicited);
  f.cq.push_receive({});
  EXPECT_THAT(f.environment.wakes, ElementsAre(Pair(2U, kWriteBack)));
  f.environment.time = kWriteBack;
  f.cq.on_wake(2);
  EXPECT_EQ(f.poll(), 1U);
  f.cq.arm(ArmFor::solicited);
  f.cq.push_receive({});
  EXPECT_THAT(f.environment.wakes.back(), Pair(0U, 2 * kWriteBack))
      << "once it has woken, solicited is solicited";
}

// The race of ibv_req_notify_cq(3): poll until empty, arm, and whatever comes at any moment is not missed.
TEST(completion_queue, arm_after_polling__misses_nothing_whenever_a_completion_comes) {
  for (std::int64_t pushed = 0; pushed <= 600; pushed += 50) {
    for (std::int64_t armed = 0; armed <= 600; armed += 50) {
      Fixture f;
      bool seen = false;
      for (std::int64_t now = 0; now <= 1000; now += 50) {
        f.environment.time = nanoseconds{now};
        if (now == pushed) f.cq.push_receive({.id = 7});
        for (const auto& [ticket, when] : f.environment.wakes) {
          if (when == f.environment.time) f.cq.on_wake(ticket);
        }
        if (now == armed) seen = f.poll() > 0 || !f.cq.arm(ArmFor::any);
      }
      EXPECT_TRUE(seen != (f.listener.wakes == 1)) << pushed << ' ' << armed << ": seen or woken, not both";
    }
  }
}

TEST(completion_queue, moderation__wakes_for_the_count_or_after_the_period) {
  Fixture f;
  ASSERT_TRUE(f.cq.moderate({.count = 3, .period_us = 10}));
  f.cq.arm(ArmFor::any);
  f.cq.push_receive({});
  EXPECT_THAT(f.environment.wakes,
              ElementsAre(Pair(1U, kWriteBack + microseconds{10}), Pair(0U, kWriteBack)));
  f.environment.time = nanoseconds{100};
  f.cq.push_receive({});
  EXPECT_EQ(f.environment.wakes.size(), 2U);
  f.environment.time = nanoseconds{200};
  f.cq.push_receive({});
  EXPECT_THAT(f.environment.wakes.back(), Pair(1U, nanoseconds{500}));
  f.environment.time = nanoseconds{500};
  f.cq.on_wake(1);
  EXPECT_EQ(f.listener.wakes, 1);
  EXPECT_EQ(f.poll(), 3U);
  f.cq.arm(ArmFor::any);
  f.cq.push_receive({});
  const Picoseconds period_ends = nanoseconds{800} + microseconds{10};
  EXPECT_THAT(f.environment.wakes, testing::Contains(Pair(2U, period_ends)));
  f.environment.time = period_ends;
  f.cq.on_wake(1);
  EXPECT_EQ(f.listener.wakes, 1) << "the period of the first arm is void";
  f.cq.on_wake(2);
  EXPECT_EQ(f.listener.wakes, 2);
}

TEST(completion_queue, moderate__refuses_a_count_without_a_period) {
  Fixture f;
  EXPECT_EQ(f.cq.moderate({.count = 2}).error().sys, EINVAL);
  EXPECT_TRUE(f.cq.moderate({.count = 1}));
  EXPECT_TRUE(f.cq.moderate({}));
}

TEST(completion_queue, resize__keeps_what_waits_and_refuses_less) {
  Fixture f(2);
  f.cq.push_receive({.id = 1});
  f.cq.push_receive({.id = 2});
  EXPECT_EQ(f.cq.resize(1).error().sys, EINVAL);
  ASSERT_TRUE(f.cq.resize(3));
  f.cq.push_receive({.id = 3});
  EXPECT_FALSE(f.cq.overrun());
  f.environment.time = kWriteBack;
  std::array<WorkCompletion, 4> out;
  ASSERT_EQ(f.cq.poll(out), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(out[i].id, i + 1);
  EXPECT_EQ(f.cq.resize(0).error().sys, EINVAL);
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
