// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/engine.h"

#include <gtest/gtest.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <utility>
#include <vector>

#include "libbx/base/prng.h"

namespace bx::sim {
namespace {

constexpr Picoseconds kLong = std::chrono::seconds{1000};

class EngineTest : public testing::TestWithParam<EngineKind> {};

struct Recorder {
  explicit Recorder(Engine& the_engine) : engine(the_engine) {}
  // Posts an event that records `mark` when it runs.
  void post(Picoseconds delay, std::uintptr_t mark) {
    engine.post(
        delay,
        [](void* self, void* argument) {
          auto& recorder = *static_cast<Recorder*>(self);
          recorder.marks.push_back(reinterpret_cast<std::uintptr_t>(argument));
          recorder.times.push_back(recorder.engine.now());
        },
        this, reinterpret_cast<void*>(mark));
  }
  Engine& engine;
  std::vector<std::uintptr_t> marks;
  std::vector<Picoseconds> times;
};

using Marks = std::vector<std::uintptr_t>;

TEST_P(EngineTest, now__resolves_picoseconds_also_in_a_second_engine) {
  for (int round = 0; round < 2; ++round) {
    Engine engine(GetParam());
    Recorder recorder(engine);
    recorder.post(Picoseconds{1}, 1);
    EXPECT_TRUE(engine.run(kLong));
    EXPECT_EQ(engine.now(), Picoseconds{1});
    EXPECT_EQ(ns3::Simulator::Now(), ns3::PicoSeconds(1));
    EXPECT_EQ(ns3::Time::GetResolution(), ns3::Time::PS);
  }
}

TEST_P(EngineTest, post__orders_by_time_then_by_order_of_posting) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  recorder.post(milliseconds{67}, 5);
  recorder.post(nanoseconds{10}, 2);
  recorder.post(nanoseconds{10}, 3);
  recorder.post(nanoseconds{1}, 1);
  recorder.post(nanoseconds{11}, 4);
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(recorder.marks, (Marks{1, 2, 3, 4, 5}));
  EXPECT_EQ(recorder.times.back(), Picoseconds{milliseconds{67}});
  EXPECT_EQ(engine.events(), 5U);
}

TEST_P(EngineTest, post__from_an_event_with_no_delay_runs_after_what_waits_for_the_same_instant) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  engine.post(
      nanoseconds{5}, [](void* self, void*) { static_cast<Recorder*>(self)->post(Picoseconds{0}, 2); },
      &recorder);
  recorder.post(nanoseconds{5}, 1);
  recorder.post(nanoseconds{5} + Picoseconds{1}, 3);
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(recorder.marks, (Marks{1, 2, 3}));
}

TEST_P(EngineTest, post__shares_one_order_with_events_of_ns3) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  recorder.post(nanoseconds{5}, 1);
  ns3::Simulator::Schedule(ns3::NanoSeconds(5), [&] { recorder.marks.push_back(2); });
  recorder.post(nanoseconds{5}, 3);
  ns3::Simulator::Schedule(ns3::NanoSeconds(4), [&] { recorder.marks.push_back(0); });
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(recorder.marks, (Marks{0, 1, 2, 3}));
}

TEST_P(EngineTest, post__events_of_ours_have_no_context) {
  Engine engine(GetParam());
  std::uint32_t seen = 0;
  ns3::Simulator::ScheduleWithContext(7, ns3::NanoSeconds(1), [&] {
    engine.post(
        nanoseconds{1},
        [](void* out, void*) { *static_cast<std::uint32_t*>(out) = ns3::Simulator::GetContext(); }, &seen);
  });
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(seen, static_cast<std::uint32_t>(ns3::Simulator::NO_CONTEXT));
}

TEST_P(EngineTest, run__events_at_the_limit_run_and_the_clock_stands_there) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  recorder.post(nanoseconds{10}, 1);
  recorder.post(nanoseconds{10} + Picoseconds{1}, 4);
  // Posted while the limit's own instant is being run.
  engine.post(
      nanoseconds{10}, [](void* self, void*) { static_cast<Recorder*>(self)->post(Picoseconds{0}, 3); },
      &recorder);
  recorder.post(nanoseconds{10}, 2);
  EXPECT_FALSE(engine.run(nanoseconds{10}));
  EXPECT_EQ(recorder.marks, (Marks{1, 2, 3}));
  EXPECT_EQ(engine.now(), nanoseconds{10});
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(recorder.marks, (Marks{1, 2, 3, 4}));
}

TEST_P(EngineTest, run__between_events_the_clock_stands_at_the_limit) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  recorder.post(milliseconds{10}, 2);
  EXPECT_FALSE(engine.run(microseconds{3}));
  EXPECT_EQ(engine.now(), microseconds{3});
  // Earlier than the event that the engine has already looked at.
  recorder.post(microseconds{1}, 1);
  EXPECT_FALSE(engine.run(microseconds{4}));
  EXPECT_EQ(engine.now(), microseconds{4});
  EXPECT_EQ(recorder.marks, (Marks{1}));
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(recorder.times, (std::vector<Picoseconds>{microseconds{4}, milliseconds{10}}));
}

TEST_P(EngineTest, run__a_limit_in_the_past_runs_nothing) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  recorder.post(nanoseconds{100}, 1);
  EXPECT_FALSE(engine.run(nanoseconds{50}));
  EXPECT_FALSE(engine.run(nanoseconds{20}));
  EXPECT_EQ(engine.now(), nanoseconds{50});
  EXPECT_TRUE(recorder.marks.empty());
}

TEST_P(EngineTest, run__ends_at_the_last_event_when_nothing_is_left) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  EXPECT_TRUE(engine.run(kLong));
  recorder.post(nanoseconds{7}, 1);
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(engine.now(), nanoseconds{7});
}

TEST_P(EngineTest, stop__ends_the_run_after_the_event_and_the_next_run_goes_on) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  recorder.post(nanoseconds{1}, 1);
  engine.post(
      nanoseconds{1}, [](void* self, void*) { static_cast<Engine*>(self)->stop(); }, &engine);
  recorder.post(nanoseconds{1}, 2);
  EXPECT_FALSE(engine.run(kLong));
  EXPECT_EQ(recorder.marks, (Marks{1}));
  EXPECT_EQ(engine.now(), nanoseconds{1});
  EXPECT_TRUE(engine.run(kLong));
  EXPECT_EQ(recorder.marks, (Marks{1, 2}));
}

TEST_P(EngineTest, destroy__with_events_pending) {
  Engine engine(GetParam());
  Recorder recorder(engine);
  for (int i = 0; i < 10000; ++i) recorder.post(microseconds{i}, 1);
  EXPECT_FALSE(engine.run(microseconds{100}));
  EXPECT_EQ(recorder.marks.size(), 101U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EngineTest, testing::Values(EngineKind::fast, EngineKind::stock),
                         [](const auto& kind) { return kind.param == EngineKind::fast ? "fast" : "stock"; });

// Both engines run one random program of events that post events.
struct Program {
  Program(Engine& the_engine, std::uint64_t seed) : engine(the_engine), random(seed) {}
  static void step(void* self_argument, void* id_argument) {
    auto& self = *static_cast<Program*>(self_argument);
    const auto id = reinterpret_cast<std::uintptr_t>(id_argument);
    self.trace.emplace_back(self.engine.now().count(), id);
    for (std::uint64_t children = self.random.below(3); children > 0 && self.posted < 20000; --children) {
      const std::uint64_t scale = self.random.below(4);
      const std::uint64_t bound = scale == 0 ? 1 : scale == 1 ? 5000 : scale == 2 ? 2'000'000 : 90'000'000;
      self.post(Picoseconds{static_cast<std::int64_t>(self.random.below(bound))});
    }
  }
  void post(Picoseconds delay) { engine.post(delay, &step, this, reinterpret_cast<void*>(posted++)); }

  Engine& engine;
  Prng random;
  std::uintptr_t posted = 0;
  std::vector<std::pair<std::int64_t, std::uintptr_t>> trace;
};

std::vector<std::pair<std::int64_t, std::uintptr_t>> run_program(EngineKind kind, std::uint64_t seed) {
  Engine engine(kind);
  Program program(engine, seed);
  for (int i = 0; i < 50; ++i) program.post(nanoseconds{i % 7});
  for (Picoseconds limit{0}; !engine.run(limit); limit += microseconds{11}) {
  }
  return program.trace;
}

TEST(Engine, run__both_kinds_run_the_same_program_alike) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto fast = run_program(EngineKind::fast, seed);
    EXPECT_GT(fast.size(), 50U);
    EXPECT_EQ(fast, run_program(EngineKind::stock, seed));
  }
}

}  // namespace
}  // namespace bx::sim
