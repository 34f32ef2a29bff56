// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/port.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/model/run_digest.h"
#include "tests/sim/traffic.h"
#include "tests/sim/validation.h"

namespace bx::sim {
namespace {

using testing::Flow;
using testing::gbps;
using testing::kForever;
using testing::kLossless;
using testing::serialisation;
using testing::TrafficHost;

// Two hosts on one link.
struct Pair {
  explicit Pair(Rate rate, Picoseconds delay = microseconds{1}, EngineKind kind = EngineKind::fast)
      : engine(kind), a(engine, pool, 0, rate), b(engine, pool, 1, rate) {
    Port::connect(a.port(), b.port(), delay);
  }
  Engine engine;
  FramePool pool;
  TrafficHost a;
  TrafficHost b;
};

TEST(Port, pfc_quanta_time__is_512_bit_times_each) {
  EXPECT_EQ(pfc_quanta_time(1, gbps(100)), Picoseconds{5120});
  EXPECT_EQ(pfc_quanta_time(65535, gbps(100)), Picoseconds{335'539'200});
  EXPECT_EQ(pfc_quanta_time(2, gbps(25)), Picoseconds{40960});
}

class PortRateTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(PortRateTest, kick__a_million_frames_arrive_within_one_of_the_exact_time) {
  const Rate rate = gbps(GetParam());
  Pair pair(rate);
  constexpr std::uint64_t kFrames = 1'000'000;
  constexpr std::uint32_t kPayload = 1025;  // 1107 bytes on the wire: no whole picoseconds at most rates
  pair.a.send({.dst = 1, .frames = kFrames, .payload_bytes = kPayload});
  EXPECT_TRUE(pair.engine.run(kForever));
  ASSERT_EQ(pair.b.arrivals().size(), kFrames);
  const std::uint64_t wire_bytes = kPayload + kRoceOverheadBytes;
  const Picoseconds exact{static_cast<std::int64_t>(wire_bytes * 8'000'000'000ULL / GetParam())};
  EXPECT_EQ(pair.b.arrivals().back().time, exact + microseconds{1});
  testing::validate(
      {.section = "Serialisation",
       .what = fmt::format("a million frames of {} B on the wire at {} Gb/s", wire_bytes, GetParam()),
       .against = "bytes x 8 / rate",
       .expected = static_cast<double>(exact.count()) / 1e6,
       .measured = static_cast<double>((pair.b.arrivals().back().time - microseconds{1}).count()) / 1e6,
       .unit = "us"});
  EXPECT_EQ(pair.b.port().counters().rx_bytes, kFrames * wire_bytes);
  EXPECT_EQ(pair.engine.events(), 2 * kFrames);
  EXPECT_EQ(pair.pool.in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Gbps, PortRateTest, ::testing::Values(25, 40, 100, 200, 400, 800));

TEST(Port, kick__a_frame_arrives_whole_after_serialisation_and_delay) {
  Pair pair(gbps(100), nanoseconds{500});
  pair.a.send({.dst = 1, .frames = 2, .payload_bytes = 4096});
  EXPECT_TRUE(pair.a.port().busy());
  EXPECT_TRUE(pair.engine.run(kForever));
  const Picoseconds t = serialisation(4178, gbps(100));
  EXPECT_EQ(t, Picoseconds{334'240});
  ASSERT_EQ(pair.b.arrivals().size(), 2U);
  EXPECT_EQ(pair.b.arrivals()[0].time, t + nanoseconds{500});
  EXPECT_EQ(pair.b.arrivals()[1].time, 2 * t + nanoseconds{500});
  EXPECT_FALSE(pair.a.port().busy());
  EXPECT_EQ(pair.a.transmitted(), 2U);
  EXPECT_EQ(pair.a.port().counters().tx_frames, 2U);
  EXPECT_EQ(pair.a.port().counters().tx_bytes, 2U * 4178);
  EXPECT_EQ(pair.b.port().counters().rx_frames, 2U);
}

TEST(Port, kick__both_directions_are_independent) {
  Pair pair(gbps(100));
  pair.a.send({.dst = 1, .frames = 10});
  pair.b.send({.dst = 0, .frames = 10});
  EXPECT_TRUE(pair.engine.run(kForever));
  EXPECT_EQ(pair.a.arrivals().back().time, pair.b.arrivals().back().time);
}

TEST(Port, pause__the_frame_that_is_being_sent_is_finished) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(1U << kLossless, 65535);
  pair.a.send({.dst = 1, .frames = 5});
  EXPECT_FALSE(pair.engine.run(microseconds{300}));
  EXPECT_EQ(pair.b.arrivals().size(), 1U);
  EXPECT_TRUE(pair.a.port().paused(kLossless));
  EXPECT_EQ(pair.a.port().paused_mask(), 1U << kLossless);
  EXPECT_EQ(pair.a.port().counters().pfc_pause_rx, 1U);
}

TEST(Port, pause__ends_by_itself_after_its_quanta) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(1U << kLossless, 1000);
  pair.a.send({.dst = 1, .frames = 2});
  EXPECT_TRUE(pair.engine.run(kForever));
  const Picoseconds paused_at = serialisation(kMinimumWireBytes, gbps(100)) + nanoseconds{100};
  const Picoseconds resumed_at = paused_at + pfc_quanta_time(1000, gbps(100));
  ASSERT_EQ(pair.b.arrivals().size(), 2U);
  EXPECT_EQ(pair.b.arrivals()[1].time, resumed_at + serialisation(4178, gbps(100)) + nanoseconds{100});
  EXPECT_EQ(pair.a.port().counters().paused_time, pfc_quanta_time(1000, gbps(100)));
  EXPECT_EQ(pair.a.port().paused_time(), pfc_quanta_time(1000, gbps(100)));
}

TEST(Port, pause__a_refresh_counts_from_its_arrival) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(1U << kLossless, 1000);  // 5.12 us
  pair.a.send({.dst = 1, .frames = 2});
  EXPECT_FALSE(pair.engine.run(microseconds{4}));
  pair.b.send_pfc(1U << kLossless, 1000);
  const Picoseconds second_at =
      microseconds{4} + serialisation(kMinimumWireBytes, gbps(100)) + nanoseconds{100};
  EXPECT_FALSE(pair.engine.run(microseconds{9}));
  EXPECT_EQ(pair.b.arrivals().size(), 1U);
  EXPECT_EQ(pair.a.port().paused_time(), microseconds{9} - (second_at - microseconds{4}));
  EXPECT_TRUE(pair.engine.run(kForever));
  ASSERT_EQ(pair.b.arrivals().size(), 2U);
  EXPECT_EQ(pair.b.arrivals()[1].time,
            second_at + pfc_quanta_time(1000, gbps(100)) + serialisation(4178, gbps(100)) + nanoseconds{100});
}

TEST(Port, pause__a_shorter_one_replaces_a_longer_one) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(1U << kLossless, 65535);
  pair.a.send({.dst = 1, .frames = 2});
  EXPECT_FALSE(pair.engine.run(microseconds{4}));
  pair.b.send_pfc(1U << kLossless, 100);
  EXPECT_FALSE(pair.engine.run(microseconds{6}));
  EXPECT_EQ(pair.b.arrivals().size(), 2U);
  EXPECT_FALSE(pair.a.port().paused(kLossless));
  // What was scheduled for the long pause must not end a later one.
  pair.b.send_pfc(1U << kLossless, 65535);
  EXPECT_FALSE(pair.engine.run(microseconds{340}));
  EXPECT_TRUE(pair.a.port().paused(kLossless));
  EXPECT_TRUE(pair.engine.run(kForever));
  EXPECT_FALSE(pair.a.port().paused(kLossless));
  // Two for each of the five frames, and one for each end that a pause was to have.
  EXPECT_EQ(pair.engine.events(), 2U * 5 + 3);
}

TEST(Port, pause__many_refreshes_share_one_event) {
  Pair pair(gbps(100), nanoseconds{100});
  for (int i = 0; i < 100; ++i) pair.b.send_pfc(1U << kLossless, 1000);
  EXPECT_TRUE(pair.engine.run(kForever));
  // The first check comes after 5.12 us, the second when the pause of the last frame, at 0.77 us, ends.
  EXPECT_EQ(pair.engine.events(), 2U * 100 + 2);
}

TEST(Port, pause__zero_quanta_resume_at_once) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(1U << kLossless, 65535);
  pair.a.send({.dst = 1, .frames = 2});
  EXPECT_FALSE(pair.engine.run(microseconds{10}));
  pair.b.send_pfc(1U << kLossless, 0);
  EXPECT_FALSE(pair.engine.run(microseconds{11}));
  const Picoseconds pfc = serialisation(kMinimumWireBytes, gbps(100)) + nanoseconds{100};
  ASSERT_EQ(pair.b.arrivals().size(), 2U);
  EXPECT_EQ(pair.b.arrivals()[1].time,
            microseconds{10} + pfc + serialisation(4178, gbps(100)) + nanoseconds{100});
  EXPECT_EQ(pair.a.port().counters().paused_time, microseconds{10});
  EXPECT_EQ(pair.a.port().counters().pfc_resume_rx, 1U);
}

TEST(Port, pause__leaves_other_priorities_alone) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(1U << kLossless, 65535);
  EXPECT_FALSE(pair.engine.run(microseconds{1}));
  pair.a.send({.dst = 1, .frames = 3, .priority = kLossless});
  pair.a.send({.dst = 1, .frames = 3, .priority = 5});
  EXPECT_FALSE(pair.engine.run(microseconds{10}));
  ASSERT_EQ(pair.b.arrivals().size(), 3U);
  for (const auto& arrival : pair.b.arrivals()) EXPECT_EQ(arrival.priority, 5);
}

TEST(Port, pause__several_priorities_in_one_frame) {
  Pair pair(gbps(100), nanoseconds{100});
  pair.b.send_pfc(0b00101000, 1000);
  EXPECT_FALSE(pair.engine.run(microseconds{1}));
  EXPECT_EQ(pair.a.port().paused_mask(), 0b00101000);
  EXPECT_TRUE(pair.engine.run(kForever));
  EXPECT_EQ(pair.a.port().paused_mask(), 0);
  EXPECT_EQ(pair.a.port().counters().paused_time, 2 * pfc_quanta_time(1000, gbps(100)));
}

TEST(Port, set_digest__sees_every_frame_in_order_with_its_time) {
  const auto run = [](Picoseconds delay, std::uint64_t frames, std::uint32_t payload_bytes) {
    Pair pair(gbps(100), delay);
    RunDigest digest;
    pair.b.port().set_digest(&digest);
    pair.a.send({.dst = 1, .frames = frames, .payload_bytes = payload_bytes});
    EXPECT_TRUE(pair.engine.run(kForever));
    EXPECT_EQ(digest.frames(), frames);
    return digest.value();
  };
  const std::uint64_t base = run(nanoseconds{100}, 5, 4096);
  EXPECT_EQ(run(nanoseconds{100}, 5, 4096), base);
  EXPECT_NE(run(nanoseconds{101}, 5, 4096), base);
  EXPECT_NE(run(nanoseconds{100}, 6, 4096), base);
  EXPECT_NE(run(nanoseconds{100}, 5, 4095), base);
}

TEST(PortDeathTest, connect__refuses_a_second_link_and_unequal_rates) {
  Engine engine(EngineKind::fast);
  FramePool pool;
  TrafficHost a(engine, pool, 0, gbps(100));
  TrafficHost b(engine, pool, 1, gbps(100));
  TrafficHost c(engine, pool, 2, gbps(100));
  TrafficHost d(engine, pool, 3, gbps(25));
  Port::connect(a.port(), b.port(), nanoseconds{1});
  EXPECT_DEATH(Port::connect(a.port(), c.port(), nanoseconds{1}), "connected once");
  EXPECT_DEATH(Port::connect(c.port(), d.port(), nanoseconds{1}), "one rate");
  EXPECT_DEATH(c.send({.dst = 1, .frames = 1}), "only when it is connected");
}

}  // namespace
}  // namespace bx::sim
