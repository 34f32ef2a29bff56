// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/engine_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace bx::sim {
namespace {

using testing::ElementsAre;

struct Log {
  EngineLoop& loop;
  const Engine& engine;
  std::vector<std::int64_t> times_ps{};
  static void note(void* log, void* /*argument*/) {
    auto& self = *static_cast<Log*>(log);
    self.times_ps.push_back(self.engine.now().count());
  }
  static void note_and_stop(void* log, void* argument) {
    note(log, argument);
    static_cast<Log*>(log)->loop.stop();
  }
};

TEST(engine_loop, now__rounds_down_and_posts_fall_on_whole_nanoseconds) {
  Engine engine(EngineKind::fast);
  EngineLoop loop(engine);
  Log log{loop, engine};
  engine.post(Picoseconds{1900}, &Log::note, &log);
  EXPECT_EQ(loop.run(kNever), fabric::RunEnd::idle);
  EXPECT_EQ(loop.now(), Instant{Duration{1}});
  loop.post(Duration{0}, &Log::note, &log, nullptr);  // now, though the nanosecond has begun
  loop.post(Duration{1}, &Log::note, &log, nullptr);  // at the next one, 100 ps from now
  loop.run(kNever);
  EXPECT_THAT(log.times_ps, ElementsAre(1900, 1900, 2000));
}

TEST(engine_loop, run__says_why_it_ended) {
  Engine engine(EngineKind::fast);
  EngineLoop loop(engine);
  Log log{loop, engine};
  loop.stop();  // outside run: no effect
  loop.post(Duration{10}, &Log::note_and_stop, &log, nullptr);
  loop.post(Duration{20}, &Log::note, &log, nullptr);
  EXPECT_EQ(loop.run(Instant{Duration{5}}), fabric::RunEnd::limit);
  EXPECT_EQ(loop.now(), Instant{Duration{5}});
  EXPECT_EQ(loop.run(kNever), fabric::RunEnd::stopped);
  EXPECT_EQ(loop.now(), Instant{Duration{10}});
  EXPECT_EQ(loop.run(kNever), fabric::RunEnd::idle);
}

}  // namespace
}  // namespace bx::sim
