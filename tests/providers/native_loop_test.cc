// SPDX-License-Identifier: BSD-3-Clause
// Also of native_reactor.cc. Real time: a test waits for an event, never for a while.
#include "libbx/providers/native/native_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libbx/providers/native/native_reactor.h"

namespace bx::native {
namespace {

using namespace std::chrono_literals;
using fabric::RunEnd;
using fabric::TurnResult;

class ScriptedTurn final : public fabric::Turn {
 public:
  explicit ScriptedTurn(std::function<TurnResult(Instant)> action) : action_(std::move(action)) {}
  TurnResult turn(Instant now) noexcept override {
    ++turns;
    return action_ ? action_(now) : TurnResult{};
  }
  int turns = 0;

 private:
  std::function<TurnResult(Instant)> action_;
};

class ScriptedTimer final : public fabric::Timer {
 public:
  explicit ScriptedTimer(std::function<void(Instant)> action) : action_(std::move(action)) {}
  void on_timer(Instant now) noexcept override { action_(now); }

 private:
  std::function<void(Instant)> action_;
};

// Every test in each of the three wait modes.
class NativeLoopTest : public testing::TestWithParam<WaitMode> {
 protected:
  void SetUp() override {
    loop = std::move(*NativeLoop::create({.mode = GetParam(), .spin = 10us}));
    reactor = std::make_unique<NativeReactor>(*loop);
  }
  // Far away: a test that comes here has failed.
  [[nodiscard]] Instant limit() const { return loop->now() + 20s; }

  std::unique_ptr<NativeLoop> loop;
  std::unique_ptr<NativeReactor> reactor;
};

TEST_P(NativeLoopTest, run__ends_at_its_limit) {
  const Instant when = loop->now() + 2ms;
  EXPECT_EQ(loop->run(when), RunEnd::limit);
  EXPECT_GE(loop->now(), when);
}

TEST_P(NativeLoopTest, attach__asks_for_a_first_turn_and_not_inside_the_call) {
  ScriptedTurn turn([&](Instant) {
    loop->stop();
    return TurnResult{};
  });
  reactor->attach(&turn);
  EXPECT_EQ(turn.turns, 0);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(turn.turns, 1);
}

TEST_P(NativeLoopTest, turn__comes_again_while_it_asks_for_more) {
  ScriptedTurn turn([&](Instant) {
    if (turn.turns == 5) loop->stop();
    return TurnResult{.more = turn.turns < 5};
  });
  reactor->attach(&turn);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(turn.turns, 5);
}

TEST_P(NativeLoopTest, timers__fire_in_the_order_of_time_then_of_arming) {
  std::vector<int> fired;
  const auto note = [&](int number) {
    return [&fired, this, number](Instant) {
      fired.push_back(number);
      if (fired.size() == 3) loop->stop();
    };
  };
  ScriptedTimer late(note(3));
  ScriptedTimer first(note(1));
  ScriptedTimer second(note(2));
  const Instant soon = loop->now() + 1ms;
  reactor->arm(late, soon + 1ms);
  reactor->arm(first, soon);
  reactor->arm(second, soon);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(fired, (std::vector{1, 2, 3}));
}

TEST_P(NativeLoopTest, timers__never_fire_early_and_bring_a_turn) {
  Instant fired{};
  ScriptedTimer timer([&](Instant now) { fired = now; });
  ScriptedTurn turn([&](Instant now) {
    if (fired == now) loop->stop();
    return TurnResult{};
  });
  reactor->attach(&turn);
  const Instant when = loop->now() + 3ms;
  reactor->arm(timer, when);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_GE(fired, when);
  EXPECT_FALSE(timer.armed());
}

TEST_P(NativeLoopTest, timers__that_are_cancelled_or_destroyed_do_not_fire) {
  ScriptedTimer cancelled([](Instant) { ADD_FAILURE(); });
  reactor->arm(cancelled, loop->now() + 1ms);
  {
    ScriptedTimer destroyed([](Instant) { ADD_FAILURE(); });
    reactor->arm(destroyed, loop->now() + 1ms);
  }
  reactor->cancel(cancelled);
  loop->run(loop->now() + 3ms);
}

TEST_P(NativeLoopTest, now__stands_still_in_a_turn) {
  ScriptedTurn turn([&](Instant now) {
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(reactor->now(), now);
    loop->stop();
    return TurnResult{};
  });
  reactor->attach(&turn);
  loop->run(limit());
}

TEST_P(NativeLoopTest, wake__from_another_thread_ends_the_sleep) {
  ScriptedTurn turn([&](Instant) {
    if (turn.turns == 2) loop->stop();
    return TurnResult{};
  });
  reactor->attach(&turn);
  loop->run(loop->now());  // the first turn
  ASSERT_EQ(turn.turns, 1);
  std::thread other([&] { reactor->waker().wake(); });
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  other.join();
}

TEST_P(NativeLoopTest, reactor__may_be_destroyed_in_its_own_turn) {
  ScriptedTurn turn([&](Instant) {
    loop->stop();
    reactor.reset();
    return TurnResult{.more = true};
  });
  reactor->attach(&turn);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(turn.turns, 1);
}

TEST_P(NativeLoopTest, watch__tells_readiness_and_forget_ends_it) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  struct Reader final : FdListener {
    void on_ready(std::uint32_t) noexcept override {
      ++events;
      if (then) then();
    }
    int events = 0;
    std::function<void()> then;
  } reader;
  reader.then = [&] { loop->stop(); };
  ASSERT_TRUE(loop->watch(ends[0], reader));
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(reader.events, 1);
  loop->forget(ends[0], reader);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  loop->run(loop->now() + 1ms);
  EXPECT_EQ(reader.events, 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

// A queue whose completion comes exactly between the request for an interrupt and the last look.
class RacingQueue final : public ArmedQueue {
 public:
  explicit RacingQueue(std::function<void()> found) : found_(std::move(found)) {}
  bool look() noexcept override {
    if (!ready) return false;
    unlink();
    found_();
    return true;
  }
  void request_interrupt() noexcept override {
    ++requests;
    ready = true;
  }
  bool ready = false;
  int requests = 0;

 private:
  std::function<void()> found_;
};

TEST_P(NativeLoopTest, sleep__looks_again_after_it_has_asked_for_an_interrupt) {
  RacingQueue queue([&] { loop->stop(); });
  loop->arm(queue);
  if (GetParam() == WaitMode::polled) {  // which never sleeps
    EXPECT_EQ(loop->run(loop->now() + 1ms), RunEnd::limit);
    EXPECT_EQ(queue.requests, 0);
    return;
  }
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(queue.requests, 1);
}

TEST_P(NativeLoopTest, queue__that_is_polled_needs_no_interrupt) {
  int looks = 0;
  RacingQueue queue([&] {
    ++looks;
    loop->stop();
  });
  queue.ready = true;
  loop->arm(queue);
  EXPECT_EQ(loop->run(limit()), RunEnd::stopped);
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(queue.requests, 0);
}

std::string mode_name(const testing::TestParamInfo<WaitMode>& mode) {
  constexpr std::array<const char*, 3> kNames{"poll", "event", "adaptive"};
  return kNames.at(static_cast<std::size_t>(mode.param));
}

INSTANTIATE_TEST_SUITE_P(modes, NativeLoopTest,
                         testing::Values(WaitMode::polled, WaitMode::event, WaitMode::adaptive), mode_name);

}  // namespace
}  // namespace bx::native
