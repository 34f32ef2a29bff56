// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/virtual/virtual_reactor.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/providers/loopback/heap_loop.h"
#include "tests/support/allocation_guard.h"

namespace bx::virtual_time {
namespace {

using fabric::RunEnd;
using fabric::TurnResult;
using fabric::Work;

Instant at(std::int64_t ns) {
  return Instant{Duration{ns}};
}
std::int64_t ns(Instant when) {
  return when.time_since_epoch().count();
}

// Costs: a turn 10 ns, a handler 1000 ns, noticing a wake-up 5 ns.
HostCpuCosts test_costs() {
  HostCpuCosts costs;
  costs.turn = Duration{10};
  costs.handler = Duration{1000};
  costs.wake_polled = Duration{5};
  costs.wake_event = Duration{400};
  costs.interrupt = Duration{100};
  return costs;
}

class ReactorTest : public testing::Test {
 protected:
  class ScriptedTurn final : public fabric::Turn {
   public:
    explicit ScriptedTurn(std::function<TurnResult(Instant)> action = {}) : action_(std::move(action)) {}
    TurnResult turn(Instant now) noexcept override {
      times.push_back(ns(now));
      return action_ ? action_(now) : TurnResult{};
    }
    std::vector<std::int64_t> times;

   private:
    std::function<TurnResult(Instant)> action_;
  };
  class ScriptedTimer final : public fabric::Timer {
   public:
    explicit ScriptedTimer(std::function<void(Instant)> action = {}) : action_(std::move(action)) {}
    void on_timer(Instant now) noexcept override {
      times.push_back(ns(now));
      if (action_) action_(now);
    }
    std::vector<std::int64_t> times;

   private:
    std::function<void(Instant)> action_;
  };
  class ScriptedTask final : public ReactorTask {
   public:
    explicit ScriptedTask(std::function<void(Instant)> action = {}) : action_(std::move(action)) {}
    void run_task(Instant now) noexcept override {
      times.push_back(ns(now));
      if (action_) action_(now);
    }
    std::vector<std::int64_t> times;

   private:
    std::function<void(Instant)> action_;
  };
  class CountingDoorbell final : public Doorbell {
   public:
    explicit CountingDoorbell(loopback::HeapLoop& loop) : loop_(loop) {}
    void on_doorbell() noexcept override { times.push_back(ns(loop_.now())); }
    std::vector<std::int64_t> times;

   private:
    loopback::HeapLoop& loop_;
  };

  std::unique_ptr<VirtualReactor> make_reactor(WaitMode mode = WaitMode::polled) {
    return std::make_unique<VirtualReactor>(alarms, HostCpu(test_costs(), mode));
  }

  // Runs until the clock stands at `when`, even if nothing happens there.
  void run_to(std::int64_t when) {
    loop.post(
        at(when) - loop.now(), [](void*, void*) {}, nullptr, nullptr);
    loop.run(at(when));
  }

  loopback::HeapLoop loop;
  AlarmPool alarms{loop};
  std::unique_ptr<VirtualReactor> reactor = make_reactor();
};

using Times = std::vector<std::int64_t>;

TEST_F(ReactorTest, attach__asks_for_a_first_turn_and_not_inside_the_call) {
  ScriptedTurn turn;
  reactor->attach(&turn);
  EXPECT_TRUE(turn.times.empty());
  EXPECT_EQ(reactor->run(kNever), RunEnd::idle);
  EXPECT_EQ(turn.times, Times{5});
}

TEST_F(ReactorTest, attach__of_null_ends_the_turns) {
  ScriptedTurn turn;
  reactor->attach(&turn);
  reactor->attach(nullptr);
  reactor->waker().wake();
  reactor->run(kNever);
  EXPECT_TRUE(turn.times.empty());
}

TEST_F(ReactorTest, wake__brings_one_turn_however_often_it_is_called) {
  ScriptedTurn turn;
  reactor->attach(&turn);
  run_to(1000);
  for (int i = 0; i < 5; ++i) reactor->waker().wake();
  EXPECT_EQ(turn.times.size(), 1U);
  run_to(2000);
  EXPECT_EQ(turn.times, (Times{5, 1005}));
}

TEST_F(ReactorTest, wake__inside_a_turn_brings_another_when_its_work_is_paid) {
  int turns = 0;
  ScriptedTurn turn([&](Instant) {
    if (++turns == 1) reactor->waker().wake();
    return TurnResult{.work = {.handlers = 1}};
  });
  reactor->attach(&turn);
  reactor->run(kNever);
  EXPECT_EQ(turn.times, (Times{5, 1015}));
}

TEST_F(ReactorTest, wake__while_the_cpu_is_busy_waits_for_it_and_no_longer) {
  ScriptedTurn turn([](Instant) { return TurnResult{.work = {.handlers = 1}}; });
  reactor->attach(&turn);
  run_to(500);  // the turn at 5 costs until 1015
  reactor->waker().wake();
  reactor->run(kNever);
  EXPECT_EQ(turn.times, (Times{5, 1015}));
}

TEST_F(ReactorTest, more__brings_turns_back_to_back) {
  int left = 3;
  ScriptedTurn turn([&](Instant) { return TurnResult{.more = left-- > 0, .work = {.handlers = 1}}; });
  reactor->attach(&turn);
  reactor->run(kNever);
  EXPECT_EQ(turn.times, (Times{5, 1015, 2025, 3035}));
  EXPECT_EQ(reactor->cpu_time(), Duration{4040});
  EXPECT_EQ(reactor->turns(), 4U);
}

TEST_F(ReactorTest, now__is_constant_within_a_turn) {
  ScriptedTurn turn([&](Instant now) {
    EXPECT_EQ(reactor->now(), now);
    reactor->waker().wake();
    EXPECT_EQ(reactor->now(), now);
    return TurnResult{.work = {.handlers = 5}};
  });
  reactor->attach(&turn);
  run_to(20'000);
  EXPECT_GT(turn.times.size(), 2U);
}

TEST_F(ReactorTest, event_mode__wakes_later_and_pays_for_the_interrupt) {
  reactor = make_reactor(WaitMode::event);
  ScriptedTurn turn;
  reactor->attach(&turn);
  run_to(10'000);
  EXPECT_EQ(turn.times, Times{400});
  EXPECT_EQ(reactor->cpu_time(), Duration{110});
}

TEST_F(ReactorTest, timer__fires_at_its_instant_disarmed_and_before_the_turn_of_that_instant) {
  std::vector<std::string> order;
  ScriptedTurn turn([&](Instant) {
    order.emplace_back("turn");
    return TurnResult{};
  });
  ScriptedTimer timer([&](Instant) {
    order.emplace_back("timer");
    EXPECT_FALSE(timer.armed());
  });
  reactor->attach(&turn);
  reactor->arm(timer, at(300));
  EXPECT_TRUE(timer.armed());
  EXPECT_EQ(timer.when(), at(300));
  reactor->run(kNever);
  EXPECT_EQ(timer.times, Times{300});
  EXPECT_EQ(turn.times, (Times{5, 300}));
  EXPECT_EQ(order, (std::vector<std::string>{"turn", "timer", "turn"}));
}

TEST_F(ReactorTest, timer__in_the_past_fires_with_the_next_turn) {
  run_to(100);
  ScriptedTimer timer;
  reactor->arm(timer, at(7));
  EXPECT_TRUE(timer.times.empty());
  reactor->run(kNever);
  EXPECT_EQ(timer.times, Times{100});
}

TEST_F(ReactorTest, timer__waits_for_a_busy_cpu) {
  ScriptedTurn turn([](Instant) { return TurnResult{.work = {.handlers = 1}}; });
  reactor->attach(&turn);
  ScriptedTimer timer;
  reactor->arm(timer, at(200));
  reactor->run(kNever);
  EXPECT_EQ(timer.times, Times{1015});
}

TEST_F(ReactorTest, timer__armed_by_its_own_callback_for_now_waits_for_the_next_dispatch) {
  ScriptedTimer timer([&](Instant now) {
    if (timer.times.size() < 3) reactor->arm(timer, now);
  });
  reactor->arm(timer, at(50));
  reactor->run(kNever);
  EXPECT_EQ(timer.times, (Times{50, 60, 70}));  // each dispatch costs a turn
}

TEST_F(ReactorTest, timers__of_one_instant_fire_in_the_order_of_arming) {
  std::vector<int> order;
  std::vector<std::unique_ptr<ScriptedTimer>> timers;
  for (int i = 0; i < 20; ++i) {
    timers.push_back(std::make_unique<ScriptedTimer>([&order, i](Instant) { order.push_back(i); }));
    reactor->arm(*timers.back(), at(100));
  }
  reactor->arm(*timers[3], at(100));  // armed anew: now the last one
  reactor->run(kNever);
  ASSERT_EQ(order.size(), 20U);
  EXPECT_EQ(order.back(), 3);
  order.pop_back();
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(ReactorTest, arm__again_moves_the_timer) {
  ScriptedTimer timer;
  reactor->arm(timer, at(500));
  reactor->arm(timer, at(100));
  reactor->arm(timer, at(300));
  reactor->run(kNever);
  EXPECT_EQ(timer.times, Times{300});
}

TEST_F(ReactorTest, cancel__and_destruction_keep_a_timer_silent) {
  ScriptedTimer cancelled;
  auto destroyed = std::make_unique<ScriptedTimer>();
  reactor->arm(cancelled, at(100));
  reactor->arm(*destroyed, at(100));
  reactor->cancel(cancelled);
  EXPECT_FALSE(cancelled.armed());
  reactor->cancel(cancelled);
  destroyed.reset();
  reactor->run(kNever);
  EXPECT_TRUE(cancelled.times.empty());
}

TEST_F(ReactorTest, timers__may_cancel_and_destroy_each_other_from_callbacks) {
  auto victim = std::make_unique<ScriptedTimer>();
  ScriptedTimer other;
  ScriptedTimer killer([&](Instant) {
    victim.reset();
    reactor->cancel(other);
  });
  reactor->arm(killer, at(100));
  reactor->arm(*victim, at(100));
  reactor->arm(other, at(100));
  reactor->run(kNever);
  EXPECT_EQ(killer.times, Times{100});
  EXPECT_TRUE(other.times.empty());
}

TEST_F(ReactorTest, timers__fire_in_order_under_random_use) {
  Prng prng(11);
  std::vector<std::unique_ptr<ScriptedTimer>> timers;
  std::vector<std::int64_t> expected(60, -1);
  Times fired;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    timers.push_back(std::make_unique<ScriptedTimer>([&](Instant now) { fired.push_back(ns(now)); }));
  }
  for (int step = 0; step < 2000; ++step) {
    const std::size_t i = prng.below(timers.size());
    if (prng.chance(0.3)) {
      reactor->cancel(*timers[i]);
      expected[i] = -1;
    } else {
      expected[i] = static_cast<std::int64_t>(1000 * prng.between(1, 5000));  // apart: no waiting for the CPU
      reactor->arm(*timers[i], at(expected[i]));
    }
  }
  reactor->run(kNever);
  std::erase(expected, -1);
  std::sort(expected.begin(), expected.end());
  // Two of one instant fire in one dispatch, so the times are exactly those.
  EXPECT_EQ(fired, expected);
}

TEST_F(ReactorTest, arm_and_cancel__allocate_nothing_below_the_reserve) {
  std::vector<std::unique_ptr<ScriptedTimer>> timers;
  for (int i = 0; i < 100; ++i) timers.push_back(std::make_unique<ScriptedTimer>());
  loop.reserve_more(64);
  const test::AllocationCount count;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    reactor->arm(*timers[i], at(static_cast<std::int64_t>(1000 + i)));
  }
  for (const auto& timer : timers) reactor->cancel(*timer);
  EXPECT_EQ(count.since(), 0U);
}

TEST_F(ReactorTest, doorbell__outside_a_dispatch_rings_at_once) {
  CountingDoorbell bell(loop);
  reactor->ring(bell);
  EXPECT_EQ(bell.times, Times{0});
}

TEST_F(ReactorTest, doorbell__inside_a_turn_rings_once_when_its_work_is_paid) {
  CountingDoorbell bell(loop);
  ScriptedTurn turn([&](Instant) {
    reactor->ring(bell);
    reactor->ring(bell);
    EXPECT_TRUE(bell.times.empty());
    return TurnResult{.work = {.handlers = 1}};
  });
  reactor->attach(&turn);
  reactor->run(kNever);
  EXPECT_EQ(bell.times, Times{1015});
}

TEST_F(ReactorTest, doorbell__rings_before_the_turn_that_follows_at_the_same_instant) {
  CountingDoorbell bell(loop);
  std::vector<std::size_t> rung;
  int left = 3;
  ScriptedTurn turn([&](Instant) {
    rung.push_back(bell.times.size());
    reactor->ring(bell);
    return TurnResult{.more = left-- > 0};
  });
  reactor->attach(&turn);
  reactor->run(kNever);
  EXPECT_EQ(rung, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(bell.times, (Times{15, 25, 35, 45}));
}

TEST_F(ReactorTest, doorbell__of_a_timer_or_task_rings_at_the_end_too) {
  CountingDoorbell bell(loop);
  ScriptedTimer timer([&](Instant) { reactor->ring(bell); });
  reactor->arm(timer, at(100));
  run_to(200);
  ScriptedTask task([&](Instant) { reactor->ring(bell); });
  reactor->submit(task);
  reactor->run(kNever);
  EXPECT_EQ(bell.times, (Times{110, 215}));
}

TEST_F(ReactorTest, doorbell__destroyed_before_it_rings_is_forgotten) {
  auto bell = std::make_unique<CountingDoorbell>(loop);
  ScriptedTurn turn([&](Instant) {
    if (bell) reactor->ring(*bell);
    bell.reset();
    return TurnResult{};
  });
  reactor->attach(&turn);
  EXPECT_EQ(reactor->run(kNever), RunEnd::idle);
}

TEST_F(ReactorTest, submit__runs_a_task_once_before_the_turn) {
  std::vector<std::string> order;
  ScriptedTurn turn([&](Instant) {
    order.emplace_back("turn");
    return TurnResult{};
  });
  reactor->attach(&turn);
  run_to(100);
  ScriptedTask task([&](Instant) { order.emplace_back("task"); });
  reactor->submit(task);
  reactor->submit(task);
  EXPECT_EQ(order.size(), 1U);
  reactor->run(kNever);
  EXPECT_EQ(order, (std::vector<std::string>{"turn", "task", "turn"}));
}

TEST_F(ReactorTest, submit__from_a_task_runs_in_the_next_dispatch) {
  ScriptedTask task([&](Instant) {
    if (task.times.size() < 3) reactor->submit(task);
  });
  reactor->submit(task);
  reactor->run(kNever);
  EXPECT_EQ(task.times, (Times{5, 15, 25}));
}

TEST_F(ReactorTest, tasks__may_destroy_each_other) {
  auto victim = std::make_unique<ScriptedTask>();
  ScriptedTask killer([&](Instant) { victim.reset(); });
  reactor->submit(killer);
  reactor->submit(*victim);
  reactor->run(kNever);
  EXPECT_EQ(killer.times.size(), 1U);
}

TEST_F(ReactorTest, detach__inside_a_turn_ends_it) {
  ScriptedTurn turn([&](Instant) {
    reactor->attach(nullptr);
    return TurnResult{.more = true};
  });
  reactor->attach(&turn);
  EXPECT_EQ(reactor->run(kNever), RunEnd::idle);
  EXPECT_EQ(turn.times.size(), 1U);
}

TEST_F(ReactorTest, attach__of_another_turn_inside_a_turn_hands_over) {
  ScriptedTurn second;
  ScriptedTurn first([&](Instant) {
    reactor->attach(&second);
    return TurnResult{};
  });
  reactor->attach(&first);
  reactor->run(kNever);
  EXPECT_EQ(first.times, Times{5});
  EXPECT_EQ(second.times, Times{15});
}

TEST_F(ReactorTest, destruction__inside_a_turn_a_timer_or_a_task_is_safe) {
  ScriptedTurn turn([&](Instant) {
    reactor.reset();
    return TurnResult{.more = true, .work = {.handlers = 1}};
  });
  ScriptedTimer bystander;
  reactor->arm(bystander, at(50));
  reactor->attach(&turn);
  loop.run(kNever);
  EXPECT_FALSE(bystander.armed());

  reactor = make_reactor();
  ScriptedTimer timer([&](Instant) { reactor.reset(); });
  reactor->arm(timer, loop.now());
  reactor->arm(bystander, loop.now());
  loop.run(kNever);
  EXPECT_TRUE(bystander.times.empty());

  reactor = make_reactor();
  ScriptedTask task([&](Instant) { reactor.reset(); });
  ScriptedTask later;
  reactor->submit(task);
  reactor->submit(later);
  loop.run(kNever);
  EXPECT_EQ(reactor, nullptr);
  EXPECT_TRUE(later.times.empty());
}

TEST_F(ReactorTest, stop__ends_the_run_after_the_current_turn) {
  ScriptedTurn turn([&](Instant) {
    reactor->stop();
    return TurnResult{.more = true};
  });
  reactor->attach(&turn);
  EXPECT_EQ(reactor->run(kNever), RunEnd::stopped);
  EXPECT_EQ(turn.times, Times{5});
  EXPECT_EQ(reactor->run(kNever), RunEnd::stopped);  // and goes on where it was
  EXPECT_EQ(turn.times, (Times{5, 15}));
}

TEST_F(ReactorTest, run__stands_at_its_limit) {
  ScriptedTimer timer;
  reactor->arm(timer, at(100));
  EXPECT_EQ(reactor->run(at(99)), RunEnd::limit);
  EXPECT_EQ(reactor->now(), at(99));
  EXPECT_TRUE(timer.times.empty());
  EXPECT_EQ(reactor->run(at(100)), RunEnd::idle);
  EXPECT_EQ(timer.times, Times{100});
}

TEST_F(ReactorTest, two_reactors__share_the_clock_and_not_the_cpu) {
  auto other = make_reactor();
  ScriptedTurn slow([](Instant) { return TurnResult{.work = {.handlers = 10}}; });
  ScriptedTurn quick;
  reactor->attach(&slow);
  other->attach(&quick);
  run_to(100);
  other->waker().wake();
  reactor->waker().wake();
  loop.run(kNever);
  EXPECT_EQ(quick.times, (Times{5, 105}));
  EXPECT_EQ(slow.times, (Times{5, 10'015}));
  EXPECT_EQ(other->cpu_time(), Duration{20});
}

}  // namespace
}  // namespace bx::virtual_time
