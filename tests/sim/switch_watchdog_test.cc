// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_watchdog.h"

#include <gtest/gtest.h>

#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using testing::kForever;
using testing::kLossless;
using testing::kLossy;
using testing::Star;
using testing::star_config;
using testing::StarConfig;

constexpr std::uint64_t kMiB = 1024 * 1024;

constexpr WatchdogConfig kConfig{.action = WatchdogAction::drop,
                                 .detect = milliseconds{3},
                                 .restore = milliseconds{2},
                                 .poll = milliseconds{1}};

TEST(QueueWatchdog, poll__finds_a_storm_after_the_detection_time_without_progress) {
  QueueWatchdog watchdog;
  watchdog.arm({.paused = true, .waiting = true, .frames_sent = 5});
  const QueueWatchdog::Look stalled{.paused = true, .waiting = true, .frames_sent = 5};
  EXPECT_EQ(watchdog.poll(kConfig, stalled), WatchdogVerdict::nothing);
  EXPECT_EQ(watchdog.poll(kConfig, stalled), WatchdogVerdict::nothing);
  EXPECT_EQ(watchdog.poll(kConfig, stalled), WatchdogVerdict::storm);
  EXPECT_TRUE(watchdog.storm());
}

TEST(QueueWatchdog, poll__progress_an_empty_queue_or_a_pause_that_ends_begin_anew) {
  for (const QueueWatchdog::Look& relief :
       {QueueWatchdog::Look{true, true, 6, 0}, QueueWatchdog::Look{true, false, 5, 0},
        QueueWatchdog::Look{false, true, 5, 0}}) {
    QueueWatchdog watchdog;
    const QueueWatchdog::Look stalled{.paused = true, .waiting = true, .frames_sent = 5};
    watchdog.arm(stalled);
    EXPECT_EQ(watchdog.poll(kConfig, stalled), WatchdogVerdict::nothing);
    EXPECT_EQ(watchdog.poll(kConfig, stalled), WatchdogVerdict::nothing);
    EXPECT_EQ(watchdog.poll(kConfig, relief), WatchdogVerdict::nothing);
    EXPECT_EQ(watchdog.poll(kConfig, {true, true, relief.frames_sent, 0}), WatchdogVerdict::nothing);
    EXPECT_EQ(watchdog.poll(kConfig, {true, true, relief.frames_sent, 0}), WatchdogVerdict::nothing);
    EXPECT_EQ(watchdog.poll(kConfig, {true, true, relief.frames_sent, 0}), WatchdogVerdict::storm);
  }
}

TEST(QueueWatchdog, poll__restores_when_no_pause_has_come_for_the_restoration_time) {
  QueueWatchdog watchdog;
  watchdog.arm({.paused = true, .waiting = true});
  for (int i = 0; i < 3; ++i) (void)watchdog.poll(kConfig, {true, true, 0, 1});
  ASSERT_TRUE(watchdog.storm());
  EXPECT_EQ(watchdog.poll(kConfig, {true, false, 0, 1}), WatchdogVerdict::nothing);
  EXPECT_EQ(watchdog.poll(kConfig, {true, false, 0, 2}), WatchdogVerdict::nothing);  // one more pause
  EXPECT_EQ(watchdog.poll(kConfig, {true, false, 0, 2}), WatchdogVerdict::nothing);
  EXPECT_EQ(watchdog.poll(kConfig, {false, false, 0, 2}), WatchdogVerdict::restored);
  EXPECT_FALSE(watchdog.storm());
}

// Host 2 pauses without end from the start until `until`: a PFC frame every 300 us (a pause lasts 335 us).
void storm(Star& star, Picoseconds until) {
  while (star.engine.now() < until) {
    star.hosts[2].send_pfc(1U << kLossless, 65535);
    star.engine.run(star.engine.now() + microseconds{300});
  }
}

StarConfig storm_config(WatchdogAction action) {
  StarConfig config = star_config(4, 1 * kMiB);
  config.fabric.watchdog = kConfig;
  config.fabric.watchdog.action = action;
  return config;
}

// Without a watchdog the storm is exported: the switch pauses host 0 for as long, and the victim, host 3,
// gets nothing from it.
TEST(Watchdog, off__a_storm_spreads_to_the_senders) {
  Star star(EngineKind::fast, storm_config(WatchdogAction::off));
  star.hosts[0].send({.dst = 2, .frames = 1000});
  star.hosts[0].send({.dst = 3, .frames = 10});
  storm(star, milliseconds{20});
  EXPECT_TRUE(star.hosts[3].arrivals().empty());
  EXPECT_TRUE(star.hosts[0].port().paused(kLossless));
  EXPECT_GT(star.hosts[0].port().paused_time(), milliseconds{19});
  EXPECT_GT(star.fabric().ingress(0, kLossless).pause_frames, 100U);  // refreshed all the time
  EXPECT_EQ(star.topology.totals().storms, 0U);
  EXPECT_EQ(star.topology.totals().lossless_drops, 0U);
}

TEST(Watchdog, drop__gives_up_the_stormed_queue_and_frees_the_victim) {
  Star star(EngineKind::fast, storm_config(WatchdogAction::drop));
  star.hosts[0].send({.dst = 2, .frames = 1000});
  star.hosts[0].send({.dst = 3, .frames = 10});
  storm(star, milliseconds{2});
  EXPECT_TRUE(star.hosts[3].arrivals().empty());
  storm(star, milliseconds{4});
  EXPECT_EQ(star.hosts[3].arrivals().size(), 10U);
  const QueueCounters& queue = star.fabric().queue(2, kLossless);
  EXPECT_EQ(queue.storms, 1U);
  EXPECT_EQ(queue.watchdog_drops + queue.frames, 1000U);
  EXPECT_EQ(star.fabric().buffer().used_bytes(), 0U);
  // Other classes of the stormed port go on.
  star.hosts[1].send({.dst = 2, .frames = 10, .priority = kLossy});
  storm(star, milliseconds{5});
  EXPECT_EQ(star.fabric().queue(2, kLossy).frames, 10U);
  // The storm ends at 5 ms; 2 ms without pauses restore the queue.
  EXPECT_FALSE(star.engine.run(milliseconds{6}));
  star.hosts[0].send({.dst = 2, .frames = 5});
  EXPECT_TRUE(star.engine.run(kForever));
  EXPECT_EQ(queue.watchdog_drops + queue.frames, 1005U);
  star.hosts[0].send({.dst = 2, .frames = 7});
  EXPECT_TRUE(star.engine.run(kForever));
  EXPECT_EQ(queue.watchdog_drops + queue.frames, 1012U);
  EXPECT_EQ(star.hosts[2].arrivals().size(), queue.frames + 10);
  EXPECT_EQ(star.hosts[2].arrivals().back().psn, star.hosts[0].sent() - 1);  // the last seven came
  EXPECT_EQ(star.topology.totals().lossless_drops, 0U);
  EXPECT_EQ(star.topology.totals().watchdog_drops, queue.watchdog_drops);
}

TEST(Watchdog, forward__sends_in_spite_of_the_pause) {
  Star star(EngineKind::fast, storm_config(WatchdogAction::forward));
  star.hosts[0].send({.dst = 2, .frames = 1000});
  storm(star, milliseconds{2});
  EXPECT_LT(star.hosts[2].arrivals().size(), 5U);
  storm(star, milliseconds{5});
  EXPECT_EQ(star.hosts[2].arrivals().size(), 1000U);
  EXPECT_EQ(star.topology.totals().storms, 1U);
  EXPECT_EQ(star.topology.totals().watchdog_drops, 0U);
  // Restored: a pause holds again.
  EXPECT_TRUE(star.engine.run(kForever));
  star.hosts[2].send_pfc(1U << kLossless, 65535);
  star.engine.run(star.engine.now() + microseconds{10});
  star.hosts[0].send({.dst = 2, .frames = 10});
  star.engine.run(star.engine.now() + microseconds{100});
  EXPECT_EQ(star.hosts[2].arrivals().size(), 1000U);
}

// Pauses that let something through are congestion, not a storm.
TEST(Watchdog, drop__leaves_a_slow_receiver_alone) {
  Star star(EngineKind::fast, storm_config(WatchdogAction::drop));
  star.hosts[0].send({.dst = 2, .frames = 1'000'000});
  while (star.engine.now() < milliseconds{20}) {
    star.hosts[2].send_pfc(1U << kLossless, 65535);
    star.engine.run(star.engine.now() + microseconds{400});  // 65 us of every 400 are free
  }
  EXPECT_EQ(star.topology.totals().storms, 0U);
  EXPECT_EQ(star.topology.totals().watchdog_drops, 0U);
}

TEST(Watchdog, poll__costs_nothing_on_a_port_that_is_not_paused) {
  Star star(EngineKind::fast, storm_config(WatchdogAction::drop));
  star.hosts[0].send({.dst = 2, .frames = 10});
  EXPECT_TRUE(star.engine.run(kForever));
  EXPECT_EQ(star.engine.events(), 30U);
}

}  // namespace
}  // namespace bx::sim
