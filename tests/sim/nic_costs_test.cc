// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/nic_costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "libbx/base/prng.h"
#include "tests/sim/nic_world.h"
#include "tests/sim/validation.h"

namespace bx::sim {
namespace {

constexpr Picoseconds kPacketTime = nanoseconds{100};
constexpr Picoseconds kRoundTrip = nanoseconds{500};

// One unit of 10 million packets a second, misses of 500 ns, a bus that is otherwise infinitely fast.
NicCostConfig plain_costs() {
  NicCostConfig costs{.enabled = true, .blueflame_bytes = 256, .packets_per_second = 10'000'000};
  costs.pcie.read_latency = kRoundTrip;
  return costs;
}

// The intervals at which `messages` inline WRITEs of each of `qps` queue pairs arrive, taking turns.
std::vector<Picoseconds> write_intervals(const WorldConfig& config, unsigned qps, unsigned messages,
                                         NicCostCounters* counters = nullptr,
                                         std::uint64_t* misses = nullptr) {
  World world(config);
  std::vector<Picoseconds> arrivals;
  world.b.filter.lose = [&](const Frame&) {
    arrivals.push_back(world.engine.now());
    return false;
  };
  std::vector<RcQueuePair*> pairs;
  for (unsigned i = 0; i < qps; ++i) pairs.push_back(world.connect({.ack_timeout = 20}).first);
  for (unsigned m = 0; m < messages; ++m) {
    for (RcQueuePair* qp : pairs) {
      const Segment segment = world.a.segment(0, 8);
      world.a.post(*qp, {.segments = {&segment, 1},
                         .remote_addr = world.b.at(0),
                         .rkey = world.b.keys.rkey,
                         .opcode = RequestOpcode::write,
                         .inlined = true});
    }
  }
  world.run();
  EXPECT_EQ(world.a.sends().size(), qps * messages);
  EXPECT_TRUE(world.at_rest());
  if (counters != nullptr) *counters = world.a.nic.costs()->counters;
  if (misses != nullptr) *misses = world.a.nic.costs()->queue_pairs().misses();
  std::vector<Picoseconds> intervals;
  for (std::size_t i = 1; i < arrivals.size(); ++i) intervals.push_back(arrivals[i] - arrivals[i - 1]);
  return intervals;
}

bool all_are(const std::vector<Picoseconds>& intervals, std::size_t from, Picoseconds value) {
  return std::all_of(intervals.begin() + static_cast<std::ptrdiff_t>(from), intervals.end(),
                     [&](Picoseconds interval) { return interval == value; });
}

TEST(NicCosts, packet_rate__is_exact) {
  const auto intervals = write_intervals({.costs = {plain_costs(), {}}}, 1, 200);
  EXPECT_EQ(intervals.size(), 199U);
  EXPECT_TRUE(all_are(intervals, 0, kPacketTime));
}

void validate_interval(std::uint32_t entries, unsigned qps, std::string_view against, Picoseconds expected,
                       Picoseconds measured) {
  testing::validate({.section = "Queue pair cache: time between packets",
                     .what = fmt::format("{} queue pairs in turn, {} contexts cached", qps, entries),
                     .against = against,
                     .expected = static_cast<double>(expected.count()) / 1e3,
                     .measured = static_cast<double>(measured.count()) / 1e3,
                     .unit = "ns"});
}

// The cliff: as many queue pairs as the cache holds run at the packet rate once they have been loaded, one
// more and each packet waits for its context: 1 / (t + penalty).
TEST(NicCosts, queue_pair_cache__the_cliff_stands_where_its_size_is) {
  constexpr std::uint32_t kEntries = 32;
  NicCostConfig costs = plain_costs();
  costs.queue_pairs.entries = kEntries;
  const WorldConfig config{.costs = {costs, {}}};
  for (const unsigned qps : {1U, kEntries / 2, kEntries}) {
    std::uint64_t misses = 0;
    const auto intervals = write_intervals(config, qps, 10, nullptr, &misses);
    EXPECT_EQ(misses, qps) << "one each, to warm up";
    EXPECT_TRUE(all_are(intervals, qps, kPacketTime)) << qps << " queue pairs";
    validate_interval(kEntries, qps, "t: every context is there", kPacketTime, intervals.back());
  }
  for (const unsigned qps : {kEntries + 1, 2 * kEntries}) {
    const auto intervals = write_intervals(config, qps, 10);
    // The first queue pair sends twice before the others have rung; in the last round it is missing.
    EXPECT_TRUE(all_are({intervals.begin() + 1, intervals.end() - qps}, 0, kPacketTime + kRoundTrip)) << qps;
    validate_interval(kEntries, qps, "t + PCIe read: every context is fetched", kPacketTime + kRoundTrip,
                      *(intervals.end() - qps - 1));
  }
}

// With P units a miss holds up one of them: P / (t + penalty), where t = P / rate.
TEST(NicCosts, units__overlap_misses) {
  NicCostConfig costs = plain_costs();
  costs.queue_pairs.entries = 16;
  costs.units = 4;
  const auto intervals = write_intervals({.costs = {costs, {}}}, 64, 10);
  Picoseconds total{};
  for (const Picoseconds interval : intervals) total += interval;
  const double mean = static_cast<double>(total.count()) / static_cast<double>(intervals.size());
  const double expected = static_cast<double>((4 * kPacketTime + kRoundTrip).count()) / 4;
  EXPECT_NEAR(mean / expected, 1, 0.01);
}

// At the receiver a miss costs as much.
TEST(NicCosts, queue_pair_cache__of_the_responder) {
  NicCostConfig costs = plain_costs();
  costs.queue_pairs.entries = 16;
  for (const unsigned qps : {16U, 17U}) {
    World world({.costs = {NicCostConfig{}, costs}});
    std::vector<RcQueuePair*> pairs;
    for (unsigned i = 0; i < qps; ++i) pairs.push_back(world.connect({.ack_timeout = 20}).first);
    constexpr unsigned kMessages = 20;
    for (unsigned m = 0; m < kMessages; ++m) {
      for (RcQueuePair* qp : pairs) {
        const Segment segment = world.a.segment(0, 8);
        world.write(*qp, {.from = segment});
      }
    }
    world.run();
    const std::uint64_t misses = world.b.nic.costs()->queue_pairs().misses();
    if (qps == 16) {
      EXPECT_EQ(misses, 16U);
    } else {
      EXPECT_GE(misses, (kMessages - 1) * qps);  // all but the last round, see above
      EXPECT_GE(world.a.nic.last_arrival(), (kMessages - 1) * qps * (kPacketTime + kRoundTrip));
    }
  }
}

// Doorbell to arrival of the last bit, with and without BlueFlame: 8 Gb/s of PCIe, a byte a nanosecond.
TEST(NicCosts, latency__is_the_sum_of_its_parts) {
  NicCostConfig costs{.enabled = true, .blueflame_bytes = 64};
  costs.doorbell = nanoseconds{70};
  costs.pcie = {.rate = {8'000'000'000}, .read_latency = nanoseconds{500}, .write_latency = nanoseconds{200}};
  const auto first_arrival = [&](bool inlined) {
    World world({.costs = {costs, {}}});
    const auto [qp, peer] = world.connect();
    const Segment segment = world.a.segment(0, 40);
    world.a.post(*qp, {.segments = {&segment, 1},
                       .remote_addr = world.b.at(0),
                       .rkey = world.b.keys.rkey,
                       .opcode = RequestOpcode::write,
                       .inlined = inlined});
    world.run();
    return world.b.nic.last_arrival();
  };
  const Picoseconds wire = microseconds{1} + Serialiser({100'000'000'000}).time_for(82 + 16 + 40);
  EXPECT_EQ(first_arrival(true), wire + nanoseconds{70});
  const Picoseconds fetch = nanoseconds{70 + 500 + 64 + 24};
  const Picoseconds payload = nanoseconds{500 + 40 + 24};
  EXPECT_EQ(first_arrival(false), wire + fetch + payload);
}

TEST(NicCosts, fetch__brings_several_entries_at_once) {
  NicCostConfig costs = plain_costs();
  costs.wqes_per_fetch = 4;
  NicCostCounters counters;
  World world({.costs = {costs, {}}});
  const auto [qp, peer] = world.connect();
  const Segment segment = world.a.segment(0, 8);
  const SendRequest request{.segments = {&segment, 1},
                            .remote_addr = world.b.at(0),
                            .rkey = world.b.keys.rkey,
                            .opcode = RequestOpcode::write};
  const std::vector<SendRequest> requests(10, request);
  ASSERT_EQ(qp->post_send(requests).value(), 10U);
  world.a.nic.ring(*qp);
  world.run();
  EXPECT_EQ(world.a.nic.costs()->counters.wqe_fetches, 3U);
  EXPECT_EQ(world.a.sends().size(), 10U);
}

// 64 pages in turn through a cache of 32 translations miss each time, one huge page once.
TEST(NicCosts, translation_cache__misses_by_pages) {
  const auto misses = [](std::uint64_t page_bytes) {
    NicCostConfig costs = plain_costs();
    costs.translations.entries = 32;
    costs.page_bytes = page_bytes;
    World world({.memory_bytes = 4U << 20U, .costs = {costs, {}}});
    const auto [qp, peer] = world.connect();
    for (unsigned round = 0; round < 3; ++round) {
      for (unsigned page = 0; page < 64; ++page) {
        const Segment segment = world.a.segment(page * 4096ULL, 8);
        world.write(*qp, {.from = segment});
      }
    }
    world.run();
    EXPECT_EQ(world.a.sends().size(), 192U);
    return world.a.nic.costs()->translations().misses();
  };
  EXPECT_EQ(misses(4096), 192U);
  EXPECT_EQ(misses(2U << 20U), 1U);
}

// The bytes of a WRITE are not there when its packet is, and are when its completion is.
TEST(NicCosts, late_dma__lands_after_arrival_and_before_the_completion) {
  NicCostConfig costs{.enabled = true, .late_dma = true};
  costs.pcie = {.rate = {8'000'000'000}, .write_latency = microseconds{2}};
  World world({.costs = {NicCostConfig{}, costs}});
  const auto [qp, peer] = world.connect();
  world.a.fill(0, 4096, 7);
  world.b.receive_into(1, {});
  const Segment segment = world.a.segment(0, 4096);
  world.a.post(*qp, {.segments = {&segment, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::write_with_imm});
  const auto landed = [&] { return std::ranges::equal(world.a.bytes(0, 4096), world.b.bytes(0, 4096)); };
  while (world.b.nic.last_arrival().count() == 0) world.run(world.engine.now() + nanoseconds{1});
  EXPECT_FALSE(landed());
  EXPECT_TRUE(world.b.receives().empty());
  Picoseconds land{};
  for (;;) {
    world.run(world.engine.now() + nanoseconds{1});
    if (land.count() == 0 && landed()) land = world.engine.now();
    if (!world.b.receives().empty()) break;
  }
  EXPECT_TRUE(landed());
  // 4096 bytes in 16 TLPs, then 64 bytes of completion in one.
  EXPECT_NEAR(static_cast<double>((land - world.b.nic.last_arrival()).count()) * 1e-3, 4096 + 16 * 24 + 2000,
              2);
  EXPECT_NEAR(static_cast<double>((world.engine.now() - land).count()) * 1e-3, 64 + 24, 2);
}

TEST(NicCosts, late_dma__does_not_touch_memory_that_is_deregistered) {
  NicCostConfig costs{.enabled = true, .late_dma = true};
  costs.pcie = {.write_latency = microseconds{100}};
  World world({.costs = {NicCostConfig{}, costs}});
  const auto [qp, peer] = world.connect();
  world.a.fill(0, 4096, 7);
  const Segment segment = world.a.segment(0, 4096);
  world.write(*qp, {.from = segment});
  world.run(microseconds{20});
  EXPECT_EQ(world.a.sends().size(), 1U);  // acknowledged, and not in memory
  world.b.nic.memory().remove(world.b.keys);
  world.run();
  EXPECT_TRUE(std::ranges::all_of(world.b.bytes(0, 4096), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(world.frames.in_use(), 0U);
}

// A READ of what a WRITE before it brought sees it, however late the bytes are.
TEST(NicCosts, late_dma__reads_do_not_pass_writes) {
  NicCostConfig costs{.enabled = true, .late_dma = true};
  costs.pcie = {.write_latency = microseconds{100}};
  World world({.costs = {costs, costs}});
  const auto [qp, peer] = world.connect();
  world.a.fill(0, 1000, 9);
  const Segment from = world.a.segment(0, 1000);
  const Segment back = world.a.segment(5000, 1000);
  world.write(*qp, {.from = from});
  world.a.post(*qp, {.segments = {&back, 1},
                     .remote_addr = world.b.at(0),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::read});
  world.run();
  EXPECT_EQ(world.a.sends().size(), 2U);
  EXPECT_TRUE(std::ranges::equal(world.a.bytes(0, 1000), world.a.bytes(5000, 1000)));
}

// A receiver whose bus is slower than the link pauses the sender instead of losing anything, and the bytes go
// at the bus's rate.
TEST(NicCosts, pcie__slower_than_the_link_pauses_it) {
  NicCostConfig costs{.enabled = true};
  costs.pcie = {.rate = {40'000'000'000}, .payload_max = 256, .tlp_overhead = 24};
  World world({.memory_bytes = 4U << 20U, .costs = {NicCostConfig{}, costs}});
  const auto [qp, peer] = world.connect();
  constexpr std::uint32_t kBytes = 4U << 20U;
  const Segment segment = world.a.segment(0, kBytes);
  world.write(*qp, {.from = segment});
  world.run();
  EXPECT_EQ(world.a.sends().size(), 1U);
  EXPECT_EQ(world.b.nic.costs()->counters.receive_drops, 0U);
  EXPECT_GT(world.b.nic.costs()->counters.pause_frames, 0U);
  EXPECT_GT(world.a.nic.port().paused_time().count(), 0);
  EXPECT_EQ(world.a.nic.counters().packets_retransmitted, 0U);
  const double at_the_bus = kBytes * (256.0 + 24) / 256 * 8 / 40e9;
  EXPECT_NEAR(static_cast<double>(world.b.nic.port().paused_time().count()), 0, 1);
  EXPECT_NEAR(static_cast<double>(world.b.nic.costs()->bus().writes_until().count()) * 1e-12 / at_the_bus, 1,
              0.03);
}

struct Mixed {
  std::uint64_t digest = 0;
  std::uint64_t completions = 0;
};

// SENDs, WRITEs and READs of many sizes both ways over several queue pairs, with losses.
Mixed run_mixed(EngineKind engine, const NicCostConfig& costs, bool loses) {
  World world({.engine = engine, .costs = {costs, costs}});
  RunDigest digest;
  world.a.nic.port().set_digest(&digest);
  world.b.nic.port().set_digest(&digest);
  Prng random(42);
  if (loses) world.b.filter.lose = [&](const Frame&) { return random.next() % 50 == 0; };
  std::vector<std::pair<RcQueuePair*, RcQueuePair*>> pairs;
  for (int i = 0; i < 6; ++i) pairs.push_back(world.connect({.mtu = 1024, .ack_timeout = 6}));
  Mixed mixed;
  world.a.fill(0, 100'000, 1);
  for (std::uint32_t i = 0; i < 120; ++i) {
    const std::uint32_t length = static_cast<std::uint32_t>(random.next() % 9000);
    const auto opcode = std::array{RequestOpcode::send, RequestOpcode::write, RequestOpcode::read}[i % 3];
    const bool read = opcode == RequestOpcode::read;
    world.b.receive_into(i, {world.b.segment(200'000, 10'000)});
    const Segment segment = world.a.segment(read ? 300'000 : random.next() % 50'000, length);
    world.a.post(*pairs[i % 6].first, {.id = i,
                                       .segments = {&segment, 1},
                                       .remote_addr = world.b.at(read ? 400'000 : 500'000),
                                       .rkey = world.b.keys.rkey,
                                       .opcode = opcode});
    world.run(world.engine.now() + microseconds{random.next() % 3});
  }
  world.run();
  for (const WorkCompletion& completion : world.a.sends()) {
    EXPECT_EQ(completion.status, CompletionStatus::success);
    ++mixed.completions;
  }
  EXPECT_EQ(world.b.receives().size(), 40U);
  EXPECT_TRUE(world.at_rest());
  EXPECT_TRUE(world.bytes_conserved());
  mixed.digest = digest.value();
  world.a.nic.port().set_digest(nullptr);
  return mixed;
}

TEST(NicCosts, connectx5__carries_everything_the_same_on_either_engine) {
  const NicCostConfig* costs = find_nic_profile("connectx5");
  ASSERT_NE(costs, nullptr);
  for (const bool loses : {false, true}) {
    const Mixed fast = run_mixed(EngineKind::fast, *costs, loses);
    EXPECT_EQ(fast.completions, 120U);
    EXPECT_EQ(run_mixed(EngineKind::fast, *costs, loses).digest, fast.digest);
    EXPECT_EQ(run_mixed(EngineKind::stock, *costs, loses).digest, fast.digest);
  }
}

TEST(NicCosts, check_costs__names_what_is_wrong) {
  EXPECT_TRUE(check_costs({}).has_value());
  EXPECT_TRUE(check_costs(*find_nic_profile("connectx5")).has_value());
  EXPECT_EQ(find_nic_profile("connectx9"), nullptr);
  NicCostConfig costs{.enabled = true};
  costs.units = 17;
  EXPECT_STREQ(check_costs(costs).error().detail, "nic.units: give 1 to 16");
  costs = {.enabled = true};
  costs.page_bytes = 5000;
  EXPECT_FALSE(check_costs(costs).has_value());
  costs = {.enabled = true};
  costs.receive_xoff_bytes = costs.receive_buffer_bytes + 1;
  EXPECT_FALSE(check_costs(costs).has_value());
}

}  // namespace
}  // namespace bx::sim
