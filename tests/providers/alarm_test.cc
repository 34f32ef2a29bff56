// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/alarm.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "libbx/providers/loopback/heap_loop.h"
#include "tests/support/allocation_guard.h"

namespace bx::virtual_time {
namespace {

Instant at(std::int64_t ns) {
  return Instant{Duration{ns}};
}

class AlarmTest : public testing::Test {
 protected:
  struct Recorder {
    explicit Recorder(AlarmTest& owner) : test(owner), alarm(owner.pool, &Recorder::fire, this) {}
    static void fire(void* self) {
      auto& recorder = *static_cast<Recorder*>(self);
      recorder.fired.push_back(recorder.test.loop.now().time_since_epoch().count());
      if (recorder.then) recorder.then();
    }
    AlarmTest& test;
    std::vector<std::int64_t> fired;
    std::function<void()> then;
    Alarm alarm;
  };
  loopback::HeapLoop loop;
  AlarmPool pool{loop};
};

TEST_F(AlarmTest, arm__fires_once_at_its_time) {
  Recorder recorder(*this);
  recorder.alarm.arm(at(100));
  EXPECT_TRUE(recorder.alarm.armed());
  EXPECT_EQ(recorder.alarm.when(), at(100));
  EXPECT_TRUE(recorder.fired.empty());
  loop.run(at(1000));
  EXPECT_EQ(recorder.fired, std::vector<std::int64_t>{100});
  EXPECT_FALSE(recorder.alarm.armed());
}

TEST_F(AlarmTest, arm__of_a_past_instant_fires_now_but_not_inside_the_call) {
  loop.post(
      Duration{50}, [](void*, void*) {}, nullptr, nullptr);
  loop.run(at(50));
  Recorder recorder(*this);
  recorder.alarm.arm(at(10));
  EXPECT_TRUE(recorder.fired.empty());
  loop.run(at(50));
  EXPECT_EQ(recorder.fired, std::vector<std::int64_t>{50});
}

TEST_F(AlarmTest, arm__again_moves_it_both_ways) {
  Recorder later(*this);
  later.alarm.arm(at(100));
  later.alarm.arm(at(300));
  Recorder earlier(*this);
  earlier.alarm.arm(at(300));
  earlier.alarm.arm(at(100));
  loop.run(kNever);
  EXPECT_EQ(later.fired, std::vector<std::int64_t>{300});
  EXPECT_EQ(earlier.fired, std::vector<std::int64_t>{100});
}

TEST_F(AlarmTest, arm__for_never_is_cancel) {
  Recorder recorder(*this);
  recorder.alarm.arm(at(100));
  recorder.alarm.arm(kNever);
  EXPECT_FALSE(recorder.alarm.armed());
  loop.run(kNever);
  EXPECT_TRUE(recorder.fired.empty());
}

TEST_F(AlarmTest, cancel__keeps_it_silent_until_it_is_armed_again) {
  Recorder recorder(*this);
  recorder.alarm.arm(at(100));
  recorder.alarm.cancel();
  loop.run(at(50));
  recorder.alarm.arm(at(200));
  loop.run(kNever);
  EXPECT_EQ(recorder.fired, std::vector<std::int64_t>{200});
}

TEST_F(AlarmTest, arm__from_its_own_callback_fires_again) {
  Recorder recorder(*this);
  recorder.then = [&] {
    if (recorder.fired.size() < 3) recorder.alarm.arm(loop.now() + Duration{10});
  };
  recorder.alarm.arm(at(10));
  loop.run(kNever);
  EXPECT_EQ(recorder.fired, (std::vector<std::int64_t>{10, 20, 30}));
}

TEST_F(AlarmTest, arm__for_the_same_instant_from_its_own_callback_fires_again) {
  Recorder recorder(*this);
  recorder.then = [&] {
    if (recorder.fired.size() < 3) recorder.alarm.arm(loop.now());
  };
  recorder.alarm.arm(at(10));
  loop.run(kNever);
  EXPECT_EQ(recorder.fired, (std::vector<std::int64_t>{10, 10, 10}));
}

TEST_F(AlarmTest, destruction__while_armed_is_silent) {
  auto recorder = std::make_unique<Recorder>(*this);
  recorder->alarm.arm(at(100));
  recorder->alarm.arm(at(50));
  recorder.reset();
  EXPECT_EQ(loop.run(kNever), fabric::RunEnd::idle);
}

TEST_F(AlarmTest, destruction__inside_its_callback_is_safe) {
  auto recorder = std::make_unique<Recorder>(*this);
  recorder->then = [&] { recorder.reset(); };
  recorder->alarm.arm(at(100));
  recorder->alarm.arm(at(50));
  loop.run(kNever);
  EXPECT_EQ(recorder, nullptr);
}

TEST_F(AlarmTest, events__do_not_pile_up_when_an_alarm_is_moved_again_and_again) {
  Recorder recorder(*this);
  for (int i = 0; i < 1000; ++i) {
    recorder.alarm.arm(at(1'000'000));
    recorder.alarm.arm(loop.now() + Duration{5});
    loop.run(loop.now() + Duration{10});
  }
  EXPECT_EQ(recorder.fired.size(), 1000U);
  EXPECT_LT(loop.pending(), 5U);
}

TEST_F(AlarmTest, arm__strictly_earlier_many_times_still_fires_where_it_should) {
  Recorder recorder(*this);
  for (std::int64_t when = 1000; when >= 900; --when) recorder.alarm.arm(at(when));
  recorder.then = [&] {
    if (recorder.fired.size() == 1) recorder.alarm.arm(at(950));
  };
  loop.run(kNever);
  EXPECT_EQ(recorder.fired, (std::vector<std::int64_t>{900, 950}));
}

TEST_F(AlarmTest, arm__allocates_nothing_once_the_loop_has_room) {
  loop.reserve_more(64);
  Recorder recorder(*this);
  recorder.fired.reserve(1000);
  const test::AllocationCount count;
  for (int i = 0; i < 500; ++i) {
    recorder.alarm.arm(loop.now() + Duration{7});
    loop.run(loop.now() + Duration{7});
  }
  EXPECT_EQ(count.since(), 0U);
  EXPECT_EQ(recorder.fired.size(), 500U);
}

TEST_F(AlarmTest, many_alarms__made_and_destroyed_do_not_disturb_each_other) {
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) {
      recorders.push_back(std::make_unique<Recorder>(*this));
      recorders.back()->alarm.arm(loop.now() + Duration{1 + i});
    }
    recorders.erase(recorders.begin(), recorders.begin() + static_cast<std::ptrdiff_t>(recorders.size() / 2));
    loop.run(loop.now() + Duration{20});
    for (const auto& recorder : recorders) EXPECT_EQ(recorder->fired.size(), 1U);
    recorders.clear();
  }
}

}  // namespace
}  // namespace bx::virtual_time
