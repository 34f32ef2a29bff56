// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/traffic.h"
#include "tests/sim/validation.h"

namespace bx::sim {
namespace {

using testing::gbps;
using testing::kForever;
using testing::kLossless;
using testing::kLossy;
using testing::serialisation;
using testing::Star;
using testing::star_config;
using testing::StarConfig;
using testing::TrafficHost;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint32_t kWire = 4096 + kRoceOverheadBytes;

TEST(Switch, check_switch__refuses_what_cannot_be) {
  const auto ok = [](auto change) {
    SwitchConfig config = star_config(4, 8 * kMiB).fabric;
    config.buffer.ports = 4;
    change(config);
    return check_switch(config).has_value();
  };
  EXPECT_TRUE(ok([](SwitchConfig&) {}));
  EXPECT_FALSE(ok([](SwitchConfig& c) { c.rate = {}; }));
  EXPECT_FALSE(ok([](SwitchConfig& c) { c.pause_quanta = 0; }));
  EXPECT_FALSE(ok([](SwitchConfig& c) { c.buffer.total_bytes = 1000; }));
  EXPECT_TRUE(ok([](SwitchConfig& c) { c.ecn[3] = {100, 200, 0.2}; }));
  EXPECT_FALSE(ok([](SwitchConfig& c) { c.ecn[3] = {200, 200, 0.2}; }));
  EXPECT_FALSE(ok([](SwitchConfig& c) { c.ecn[3] = {100, 200, 1.5}; }));
  EXPECT_FALSE(ok([](SwitchConfig& c) { c.ecn[3] = {100, 200, std::nan("")}; }));
}

TEST(Switch, headroom_shortfall_bytes__of_the_class_that_lacks_most) {
  SwitchConfig config = star_config(4, 4 * kMiB).fabric;
  config.buffer.ports = 4;
  EXPECT_EQ(headroom_shortfall_bytes(config, microseconds{1}, kFrameBytesMax), 0U);
  config.buffer.classes[kLossless].headroom_bytes -= 1;
  EXPECT_EQ(headroom_shortfall_bytes(config, microseconds{1}, kFrameBytesMax), 1U);
  config.buffer.classes[4] = {.lossless = true,
                              .headroom_bytes = config.buffer.classes[3].headroom_bytes - 9};
  EXPECT_EQ(headroom_shortfall_bytes(config, microseconds{1}, kFrameBytesMax), 10U);
  // 1 us more is 12500 bytes each way at 100 Gb/s.
  EXPECT_EQ(headroom_shortfall_bytes(config, microseconds{2}, kFrameBytesMax), 25'010U);
  // A port of its own rate and headroom: what the classes say no longer counts.
  config.port_rates = {gbps(100), gbps(100), gbps(100), gbps(25)};
  const auto needed =
      static_cast<std::uint32_t>(headroom_needed_bytes({.rate = gbps(100), .delay = microseconds{1}}));
  config.buffer.port_headroom_bytes = {needed, needed, needed - 3, needed - 18'750};
  EXPECT_EQ(headroom_shortfall_bytes(config, microseconds{1}, kFrameBytesMax), 3U);
}

TEST(Switch, receive__forwards_after_the_whole_frame_is_in) {
  Star star(EngineKind::fast, star_config(3, 8 * kMiB));
  star.hosts[0].send({.dst = 2, .frames = 1});
  EXPECT_TRUE(star.engine.run(kForever));
  ASSERT_EQ(star.hosts[2].arrivals().size(), 1U);
  EXPECT_EQ(star.hosts[2].arrivals()[0].time, 2 * (serialisation(kWire, gbps(100)) + microseconds{1}));
  EXPECT_EQ(star.engine.events(), 3U);  // two deliveries; the end of a frame that nothing waits for is none
  EXPECT_EQ(star.fabric().queue(2, kLossless).frames, 1U);
  EXPECT_EQ(star.fabric().queue(2, kLossless).bytes, 0U);
  EXPECT_EQ(star.fabric().buffer().used_bytes(), 0U);
}

TEST(Switch, receive__a_host_that_is_nowhere_is_an_unroutable_drop) {
  Star star(EngineKind::fast, star_config(3, 8 * kMiB));
  star.fabric().set_route(1, {});
  star.hosts[0].send({.dst = 77, .frames = 2});
  star.hosts[0].send({.dst = 1, .frames = 3});
  EXPECT_TRUE(star.engine.run(kForever));
  EXPECT_EQ(star.topology.totals().unroutable_drops, 5U);
  EXPECT_EQ(star.pool.in_use(), 0U);
}

TEST(Switch, set_route__ecmp_keeps_a_flow_on_one_path_and_spreads_flows) {
  const auto spread = [](std::uint64_t seed) {
    Star star(EngineKind::fast, star_config(5, 8 * kMiB), seed);
    const std::array<std::uint16_t, 4> paths{1, 2, 3, 4};
    star.fabric().set_route(100, paths);
    for (std::uint16_t flow = 0; flow < 400; ++flow) {
      star.hosts[0].send({.dst = 100, .frames = 2, .payload_bytes = 64, .udp_src_port = flow});
    }
    EXPECT_TRUE(star.engine.run(kForever));
    std::map<std::uint32_t, std::size_t> path_of;  // by flow: frames of a flow have successive PSNs
    for (std::size_t host = 1; host < 5; ++host) {
      EXPECT_GT(star.hosts[host].arrivals().size(), 2U * 60);
      for (const auto& arrival : star.hosts[host].arrivals()) {
        const auto [place, is_new] = path_of.emplace(arrival.psn / 2, host);
        EXPECT_EQ(place->second, host);
      }
    }
    EXPECT_EQ(path_of.size(), 400U);
    return path_of;
  };
  EXPECT_EQ(spread(1), spread(1));
  EXPECT_NE(spread(1), spread(2));
}

TEST(Switch, next_frame__higher_priorities_go_first) {
  Star star(EngineKind::fast, star_config(4, 8 * kMiB));
  star.hosts[0].send({.dst = 3, .frames = 20, .priority = 1});
  star.hosts[1].send({.dst = 3, .frames = 20, .priority = 6});
  EXPECT_TRUE(star.engine.run(kForever));
  const auto& arrivals = star.hosts[3].arrivals();
  ASSERT_EQ(arrivals.size(), 40U);
  // The first of the low ones may have been on its way already.
  for (std::size_t i = 1; i <= 19; ++i) EXPECT_EQ(arrivals[i].priority, 6);
}

// Store-and-forward, line rate from the start: the last of N * frames arrives at
// t + d + N * frames * t + d, whatever PFC does on the way.
struct Incast {
  std::uint16_t senders;
  std::uint32_t mtu;
  std::uint64_t buffer_bytes;
  bool pauses;
};
class IncastTest : public ::testing::TestWithParam<Incast> {};

TEST_P(IncastTest, last_arrival__equals_the_closed_form) {
  const Incast& incast = GetParam();
  const std::uint16_t receiver = incast.senders;
  Star star(EngineKind::fast,
            star_config(static_cast<std::uint16_t>(incast.senders + 1), incast.buffer_bytes));
  const std::uint64_t frames = kMiB / incast.mtu;
  for (std::uint16_t i = 0; i < incast.senders; ++i) {
    star.hosts[i].send({.dst = receiver, .frames = frames, .payload_bytes = incast.mtu});
  }
  EXPECT_TRUE(star.engine.run(kForever));
  const auto& arrivals = star.hosts[receiver].arrivals();
  ASSERT_EQ(arrivals.size(), incast.senders * frames);
  const Picoseconds t = serialisation(incast.mtu + kRoceOverheadBytes, gbps(100));
  EXPECT_EQ(arrivals.back().time,
            t + microseconds{1} + static_cast<std::int64_t>(incast.senders * frames) * t + microseconds{1});
  const SwitchTotals totals = star.topology.totals();
  EXPECT_EQ(totals.lossless_drops, 0U);
  EXPECT_EQ(totals.drops, 0U);
  EXPECT_EQ(totals.pause_frames > 0, incast.pauses);
  EXPECT_EQ(totals.resume_frames > 0, incast.pauses);
  EXPECT_EQ(star.fabric().buffer().used_bytes(), 0U);
  EXPECT_EQ(star.pool.in_use(), 0U);
  // In order per source.
  std::vector<std::uint32_t> next(incast.senders, 0);
  for (const auto& arrival : arrivals) ASSERT_EQ(arrival.psn, next[arrival.src]++);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, IncastTest,
    ::testing::Values(Incast{16, 4096, 64 * kMiB, false}, Incast{16, 1024, 64 * kMiB, false},
                      Incast{64, 4096, 256 * kMiB, false}, Incast{64, 1024, 256 * kMiB, false},
                      Incast{16, 4096, 2 * kMiB, true}, Incast{16, 1024, 2 * kMiB, true},
                      Incast{64, 4096, 5 * kMiB, true}, Incast{64, 1024, 5 * kMiB, true}),
    [](const auto& shape) {
      return std::to_string(shape.param.senders) + "_mtu" + std::to_string(shape.param.mtu) +
             (shape.param.pauses ? "_paused" : "_free");
    });

// The bounds that are quoted elsewhere (sim-model.md: 64 x 1 MiB at MTU 4096) add the last acknowledgement.
TEST(Switch, last_arrival__gives_the_published_bound) {
  const Picoseconds t = serialisation(kWire, gbps(100));
  const Picoseconds data = t + microseconds{1} + 64 * 256 * t + microseconds{1};
  const Picoseconds ack = serialisation(kRoceOverheadBytes + 4, gbps(100));
  EXPECT_NEAR(static_cast<double>((data + 2 * (ack + microseconds{1})).count()) / 1e6, 5480.54, 0.01);
}

TEST(Switch, receive__xoff_comes_at_the_predicted_threshold) {
  for (const std::int8_t alpha_log2 : std::initializer_list<std::int8_t>{-3, 0, 1}) {
    StarConfig config = star_config(17, 12 * kMiB);
    config.fabric.buffer.classes[kLossless].alpha_log2 = alpha_log2;
    Star star(EngineKind::fast, config);
    for (std::uint16_t i = 0; i < 16; ++i) star.hosts[i].send({.dst = 16, .frames = 4096});
    Picoseconds limit{};
    while (star.topology.totals().pause_frames == 0) star.engine.run(limit += nanoseconds{20});
    const double x = static_cast<double>(xoff_threshold_bytes(star.fabric().config().buffer, kLossless, 16));
    std::uint64_t total = 0;
    for (std::uint16_t i = 0; i < 16; ++i) total += star.fabric().buffer().used_bytes(i, kLossless);
    testing::validate(
        {.section = "XOFF onset",
         .what = fmt::format("16:1, 12 MiB, alpha 2^{}: bytes of an ingress port when it is paused",
                             int{alpha_log2}),
         .against = "a B' / (1 + a N)",
         .expected = x,
         .measured = static_cast<double>(total) / 16,
         .unit = "B",
         .tolerance = 0.1});
  }
}

// The worst case of the formula. The receiver is paused, so nothing drains. Reverse traffic keeps the port
// towards the sender busy: when XOFF is decided a frame has begun a picosecond ago, and at 1 us the sender
// begins its last frame 1.28 ns (16 bytes) before the PFC frame is there.
std::uint64_t drops_with_headroom(std::int64_t spare_bytes) {
  StarConfig config = star_config(3, 1 * kMiB);
  ClassBufferConfig& lossless = config.fabric.buffer.classes[kLossless];
  const std::uint64_t needed = headroom_needed_bytes(
      {.rate = gbps(100), .delay = microseconds{1}, .own_frame_bytes = kWire, .peer_frame_bytes = kWire});
  lossless.headroom_bytes = static_cast<std::uint32_t>(static_cast<std::int64_t>(needed) + spare_bytes);
  Star star(EngineKind::fast, config);
  star.hosts[2].send_pfc(1U << kLossless, 65535);
  EXPECT_FALSE(star.engine.run(microseconds{2}));
  star.hosts[1].send({.dst = 0, .frames = 500, .priority = kLossy});
  EXPECT_FALSE(star.engine.run(microseconds{2} + Picoseconds{1}));
  star.hosts[0].send({.dst = 2, .frames = 500});
  EXPECT_FALSE(star.engine.run(microseconds{100}));
  EXPECT_TRUE(star.fabric().buffer().xoff(0, kLossless));
  EXPECT_TRUE(star.hosts[0].port().paused(kLossless));
  const std::uint64_t drops = star.fabric().ingress(0, kLossless).lossless_drops;
  EXPECT_EQ(star.topology.totals().lossless_drops, drops);
  if (drops == 0) {
    // The case is as bad as it can be: eight frames of what fits 8.004.
    EXPECT_EQ(star.fabric().buffer().headroom_bytes(0, kLossless), 8U * kWire);
  }
  return drops;
}

TEST(Switch, receive__headroom_by_the_formula_loses_nothing_and_one_frame_less_loses_one) {
  const auto check = [](std::string what, std::int64_t spare_bytes, double drops) {
    testing::validate({.section = "Headroom",
                       .what = std::move(what),
                       .against = "802.1Q Annex N: own frame + PFC frame + 2 d B + response + peer's frame",
                       .expected = drops,
                       .measured = static_cast<double>(drops_with_headroom(spare_bytes)),
                       .unit = "frames lost"});
  };
  check("as the formula says", 0, 0);
  check("one frame less", -std::int64_t{kWire}, 1);
}

TEST(Switch, receive__headroom_short_by_the_last_bytes_loses_one) {
  EXPECT_EQ(drops_with_headroom(-16), 0U);
  EXPECT_EQ(drops_with_headroom(-17), 1U);
}

TEST(Switch, on_refresh__a_pause_lasts_as_long_as_it_must) {
  StarConfig config = star_config(3, 1 * kMiB);
  config.fabric.pause_quanta = 1000;  // 5.12 us
  Star star(EngineKind::fast, config);
  star.hosts[2].send_pfc(1U << kLossless, 65535);  // 335 us
  EXPECT_FALSE(star.engine.run(microseconds{2}));
  star.hosts[0].send({.dst = 2, .frames = 1000});
  EXPECT_FALSE(star.engine.run(microseconds{50}));
  const std::uint64_t sent = star.hosts[0].sent();
  EXPECT_LT(sent, 500U);
  EXPECT_FALSE(star.engine.run(microseconds{330}));
  EXPECT_EQ(star.hosts[0].sent(), sent);
  const std::uint64_t pauses = star.fabric().ingress(0, kLossless).pause_frames;
  EXPECT_EQ(star.fabric().ingress(0, kLossless).xoffs, 1U);
  EXPECT_NEAR(static_cast<double>(pauses), 290.0 / 2.56, 10);  // paused from about 40 us on
  EXPECT_TRUE(star.engine.run(kForever));
  EXPECT_EQ(star.hosts[2].arrivals().size(), 1000U);
  EXPECT_EQ(star.topology.totals().lossless_drops, 0U);
}

TEST(Switch, make_pfc__pauses_only_the_priority_that_is_over) {
  StarConfig config = star_config(3, 2 * kMiB);
  config.fabric.buffer.classes[4] = config.fabric.buffer.classes[kLossless];
  Star star(EngineKind::fast, config);
  star.hosts[2].send_pfc(1U << kLossless, 65535);
  EXPECT_FALSE(star.engine.run(microseconds{2}));
  star.hosts[0].send({.dst = 2, .frames = 1000, .priority = kLossless});
  EXPECT_FALSE(star.engine.run(microseconds{200}));
  EXPECT_EQ(star.hosts[0].port().paused_mask(), 1U << kLossless);
  star.hosts[0].send({.dst = 2, .frames = 10, .priority = 4});
  EXPECT_FALSE(star.engine.run(microseconds{210}));
  ASSERT_EQ(star.hosts[2].arrivals().size(), 10U);
  EXPECT_EQ(star.hosts[2].arrivals().front().priority, 4);
}

TEST(Switch, receive__a_lossy_class_drops_beside_a_lossless_one_that_does_not) {
  StarConfig config = star_config(9, 2 * kMiB);
  Star star(EngineKind::fast, config);
  for (std::uint16_t i = 0; i < 8; ++i) {
    star.hosts[i].send({.dst = 8, .frames = 300, .priority = i % 2 == 0 ? kLossless : kLossy});
  }
  EXPECT_TRUE(star.engine.run(kForever));
  const SwitchTotals totals = star.topology.totals();
  EXPECT_GT(totals.drops, 0U);
  EXPECT_EQ(totals.lossless_drops, 0U);
  EXPECT_GT(totals.pause_frames, 0U);
  EXPECT_EQ(star.fabric().queue(8, kLossy).drops, totals.drops);
  std::array<std::uint64_t, kPriorities> arrived{};
  for (const auto& arrival : star.hosts[8].arrivals()) ++arrived[arrival.priority];
  EXPECT_EQ(arrived[kLossless], 4U * 300);
  EXPECT_EQ(arrived[kLossy] + totals.drops, 4U * 300);
  EXPECT_LE(star.fabric().queue(8, kLossy).bytes_max, star.fabric().buffer().plan().shared_bytes / 2 + kWire);
  EXPECT_EQ(star.pool.in_use(), 0U);
}

// Two senders into one: the queue grows by a frame a frame time.
Star& fill_queue(Star& star, std::uint64_t frames, Ecn ecn) {
  star.hosts[0].send({.dst = 2, .frames = frames, .ecn = ecn});
  star.hosts[1].send({.dst = 2, .frames = frames, .ecn = ecn});
  EXPECT_TRUE(star.engine.run(kForever));
  return star;
}

TEST(Switch, marks__nothing_that_joins_a_queue_of_kmin) {
  StarConfig config = star_config(3, 64 * kMiB);
  config.fabric.ecn[kLossless] = {.kmin_bytes = 100 * kWire, .kmax_bytes = 100 * kWire + 1, .pmax = 0};
  Star below(EngineKind::fast, config);
  fill_queue(below, 100, Ecn::capable);
  EXPECT_EQ(below.topology.totals().queue_bytes_max, 101U * kWire);  // the last one joined kmin
  EXPECT_EQ(below.topology.totals().ecn_marks, 0U);
}

TEST(Switch, marks__everything_that_joins_a_queue_of_kmax) {
  StarConfig config = star_config(3, 64 * kMiB);
  config.fabric.ecn[kLossless] = {.kmin_bytes = 50 * kWire, .kmax_bytes = 50 * kWire + 1, .pmax = 0};
  Star star(EngineKind::fast, config);
  fill_queue(star, 200, Ecn::capable);
  std::uint64_t marked = 0;
  for (const auto& arrival : star.hosts[2].arrivals()) marked += arrival.ecn == Ecn::congestion_experienced;
  EXPECT_EQ(marked, star.topology.totals().ecn_marks);
  EXPECT_EQ(marked, star.fabric().queue(2, kLossless).ecn_marks);
  // The queue passes 50 frames after about 50 of each sender's 200.
  EXPECT_NEAR(static_cast<double>(marked), 300, 4);
}

TEST(Switch, marks__rise_linearly_to_pmax_in_between) {
  StarConfig config = star_config(3, 64 * kMiB);
  config.fabric.ecn[kLossless] = {.kmin_bytes = 1000 * kWire, .kmax_bytes = 4000 * kWire, .pmax = 0.5};
  Star star(EngineKind::fast, config);
  fill_queue(star, 4000, Ecn::capable);
  // Of 8000 frames 6000 meet a queue between kmin and kmax, and pmax / 2 of them are marked; 4 standard
  // deviations are 4 * sqrt(6000 * 0.17).
  EXPECT_NEAR(static_cast<double>(star.topology.totals().ecn_marks), 1500, 130);
}

// Two senders fill the queue by one frame for each that leaves, and then it drains: of 400 frames the first
// that leaves 51 behind is the 51st or so, long before the first that joined 51, and the last 51 leave less.
TEST(Switch, marks__at_dequeue_what_leaves_a_queue_of_kmax_behind) {
  StarConfig config = star_config(3, 64 * kMiB);
  config.fabric.ecn[kLossless] = {.kmin_bytes = 50 * kWire, .kmax_bytes = 50 * kWire + 1, .pmax = 0};
  const auto first_marked = [](const auto& arrivals) {
    const auto marked = [](const auto& arrival) { return arrival.ecn == Ecn::congestion_experienced; };
    return std::find_if(arrivals.begin(), arrivals.end(), marked) - arrivals.begin();
  };
  {
    Star joining(EngineKind::fast, config);
    fill_queue(joining, 200, Ecn::capable);
    EXPECT_NEAR(static_cast<double>(first_marked(joining.hosts[2].arrivals())), 100, 4);
  }
  config.fabric.ecn_point = EcnPoint::dequeue;
  Star leaving(EngineKind::fast, config);
  fill_queue(leaving, 200, Ecn::capable);
  const auto& arrivals = leaving.hosts[2].arrivals();
  ASSERT_EQ(arrivals.size(), 400U);
  const auto first = static_cast<std::size_t>(first_marked(arrivals));
  EXPECT_NEAR(static_cast<double>(first), 50, 4);
  for (std::size_t i = first; i < arrivals.size(); ++i) {
    EXPECT_EQ(arrivals[i].ecn == Ecn::congestion_experienced, i < 400 - 51) << i;
  }
  EXPECT_EQ(leaving.topology.totals().ecn_marks, 400U - 51 - first);
}

TEST(Switch, marks__only_frames_that_are_capable) {
  StarConfig config = star_config(3, 64 * kMiB);
  config.fabric.ecn[kLossless] = {.kmin_bytes = 0, .kmax_bytes = 1, .pmax = 1};
  Star star(EngineKind::fast, config);
  fill_queue(star, 50, Ecn::not_capable);
  EXPECT_EQ(star.topology.totals().ecn_marks, 0U);
  for (const auto& arrival : star.hosts[2].arrivals()) EXPECT_EQ(arrival.ecn, Ecn::not_capable);
}

class Metrics final : public MetricSink {
 public:
  void metric(std::string_view name, double value, std::string_view /*unit*/) override {
    values[std::string(name)] = value;
  }
  std::map<std::string, double> values;
};

TEST(Switch, report__names_the_totals) {
  SwitchTotals totals{.pause_frames = 1, .ecn_marks = 3, .lossless_drops = 5, .queue_bytes_max = 7};
  totals += SwitchTotals{.pause_frames = 10, .queue_bytes_max = 6};
  Metrics metrics;
  report(totals, metrics);
  EXPECT_EQ(metrics.values["pfc.pause_frames"], 11);
  EXPECT_EQ(metrics.values["ecn.marks"], 3);
  EXPECT_EQ(metrics.values["switch.lossless_drops"], 5);
  EXPECT_EQ(metrics.values["switch.queue_bytes_max"], 7);
}

}  // namespace
}  // namespace bx::sim
