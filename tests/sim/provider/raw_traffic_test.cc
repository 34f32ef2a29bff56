// SPDX-License-Identifier: GPL-2.0-only
// A crowded fabric, as in `bx perf sim permutation-1024` but smaller: what only makes the model fast must not
// change a run.
#include "sim/provider/raw_traffic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/provider/session_traffic.h"
#include "sim/provider/sim_fabric.h"

namespace bx::sim {
namespace {

constexpr std::uint16_t kHosts = 54;

SimConfig fat_tree(EngineKind engine) {
  SimConfig config;
  config.hosts = kHosts;
  config.topology.shape = "fat-tree";
  config.payload = "lengths";
  config.engine = engine;
  return config;
}

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t events = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

enum class Announced : std::uint8_t { no, yes };

// Every host sends 1 MiB to the one 20 further on, all at once.
Outcome run(EngineKind engine, Announced announced) {
  const auto traffic = RawTraffic::create(fat_tree(engine)).value();
  if (announced == Announced::no) traffic->network().engine().announce_to(nullptr);
  std::vector<RawFlow> flows;
  for (std::uint16_t from = 0; from < kHosts; ++from) {
    flows.push_back({from, static_cast<std::uint16_t>((from + 20) % kHosts), std::uint64_t{1} << 20U});
  }
  traffic->post(flows);
  EXPECT_TRUE(traffic->run());
  return {traffic->network().topology().digest().value(), traffic->network().engine().events()};
}

TEST(raw_traffic, run__is_the_same_with_and_without_announcements) {
  const Outcome usual = run(EngineKind::fast, Announced::yes);
  EXPECT_GT(usual.events, 50'000U);
  EXPECT_EQ(run(EngineKind::fast, Announced::no), usual);
}

TEST(raw_traffic, run__is_the_same_on_either_engine) {
  EXPECT_EQ(run(EngineKind::stock, Announced::no).digest, run(EngineKind::fast, Announced::yes).digest);
}

struct InParts {
  std::size_t partitions = 1;
  std::size_t threads = 1;
  std::string payload = "lengths";
};

struct PartOutcome {
  std::uint64_t digest = 0;
  std::uint64_t events = 0;
  std::uint64_t frames = 0;
  Picoseconds end{};
  SwitchTotals totals{};
};

PartOutcome run(const SimConfig& config, const std::vector<RawFlow>& flows) {
  const auto traffic = RawTraffic::create(config).value();
  traffic->post(flows);
  EXPECT_TRUE(traffic->run());
  const SimNetwork& network = traffic->network();
  EXPECT_EQ(network.topology().partitions().frames_in_use(), 0U);
  return {network.topology().digest().value(), network.events(), network.topology().digest().frames(),
          network.engine().now(), network.topology().totals()};
}

SimConfig in_parts(const InParts& parts) {
  SimConfig config = fat_tree(EngineKind::fast);
  config.partitions = parts.partitions;
  config.threads = parts.threads;
  config.payload = parts.payload;
  config.buffer.bytes = 2U << 20U;  // so little that an incast pauses
  return config;
}

// 18 hosts of two pods to one in a third, so that switches pause each other across partitions, and one flow
// the other way for each.
std::vector<RawFlow> incast() {
  std::vector<RawFlow> flows;
  for (std::uint16_t from = 0; from < 18; ++from) {
    flows.push_back({from, 40, std::uint64_t{1} << 18U});
    flows.push_back({static_cast<std::uint16_t>(36 + from), from, std::uint64_t{1} << 16U});
  }
  return flows;
}

TEST(raw_traffic, run__in_partitions_is_the_same_on_any_number_of_threads) {
  for (const std::string payload : {"lengths", "moved"}) {
    const PartOutcome one = run(in_parts({6, 1, payload}), incast());
    EXPECT_GT(one.totals.pause_frames, 0U);
    for (const std::size_t threads : {2U, 3U, 16U}) {
      const PartOutcome more = run(in_parts({6, threads, payload}), incast());
      EXPECT_EQ(more.digest, one.digest) << payload << ", " << threads;
      EXPECT_EQ(more.events, one.events);
      EXPECT_EQ(more.end, one.end);
    }
  }
}

// Nothing competes with it, so no order of events can change anything.
TEST(raw_traffic, run__of_one_flow_takes_as_long_in_any_number_of_partitions) {
  const std::vector<RawFlow> flow{{0, 53, std::uint64_t{1} << 20U}};
  const PartOutcome whole = run(in_parts({.partitions = 1}), flow);
  for (const std::size_t partitions : {2U, 6U, 18U}) {
    const PartOutcome parts = run(in_parts({.partitions = partitions}), flow);
    EXPECT_EQ(parts.end, whole.end) << partitions;
    EXPECT_EQ(parts.frames, whole.frames);
    EXPECT_EQ(parts.events, whole.events);
  }
}

TEST(raw_traffic, run__in_partitions_delivers_what_one_does) {
  const PartOutcome whole = run(in_parts({.partitions = 1}), incast());
  const PartOutcome parts = run(in_parts({.partitions = 6}), incast());
  EXPECT_EQ(whole.totals.lossless_drops, 0U);
  EXPECT_EQ(parts.totals.lossless_drops, 0U);
  // The receiver's link is busy from the first frame to the last in either.
  EXPECT_NEAR(static_cast<double>(parts.end.count()), static_cast<double>(whole.end.count()),
              static_cast<double>(whole.end.count()) / 100);
}

TEST(raw_traffic, idle__in_partitions_moves_all_clocks) {
  const auto traffic = RawTraffic::create(in_parts({.partitions = 6})).value();
  traffic->idle(milliseconds{3});
  for (std::size_t p = 0; p < 6; ++p) {
    EXPECT_EQ(traffic->network().topology().partitions().engine(p).now(), milliseconds{3});
  }
  traffic->post(incast());
  EXPECT_TRUE(traffic->run());
}

TEST(raw_traffic, create__refuses_partitions_that_cannot_be) {
  const auto detail_of = [](auto change) {
    SimConfig config = in_parts({.partitions = 6});
    change(config);
    const auto made = RawTraffic::create(config);
    return made ? std::string() : std::string(made.error().detail);
  };
  EXPECT_EQ(detail_of([](SimConfig&) {}), "");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.partitions = 0; }), "partitions: give 1 to 256");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.partitions = 19; }),
            "partitions: give no more than there are switches with hosts");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.threads = 0; }), "threads: give at least one");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.delay_ns = 0; }),
            "partitions: a link between two of them has no delay; give it one, or one partition");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.engine = EngineKind::stock; }),
            "partitions: several need the fast engine");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.nic.ports = 2; }), "partitions: several need NICs of one port");
  EXPECT_EQ(detail_of([](SimConfig& c) { c.faults.push_back({}); }),
            "partitions: faults can be injected into one partition only");
}

TEST(raw_traffic, create__others_refuse_partitions) {
  const std::string_view library = SimFabric::create(in_parts({.partitions = 6})).error().detail;
  EXPECT_EQ(library, "partitions: hosts that run the library need one; several are for RawTraffic");
  const SessionTrafficConfig sessions{.network = in_parts({.partitions = 6})};
  const std::string_view detail = SessionTraffic::create(sessions).error().detail;
  EXPECT_EQ(detail, "partitions: the checks of sessions need one; several are for RawTraffic");
}

}  // namespace
}  // namespace bx::sim
