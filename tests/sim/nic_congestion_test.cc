// SPDX-License-Identifier: GPL-2.0-only
// Congestion control in the NIC: pacing in the transmit path, CNPs as frames, and what an idle queue pair
// owns.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/model/congestion_profiles.h"
#include "sim/model/wire_size.h"
#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

constexpr std::size_t kTarget = 1 << 19;

CongestionConfig dcqcn() {
  CongestionConfig config{.algorithm = CongestionAlgorithm::dcqcn};
  config.cnp.interval = microseconds{10};
  return config;
}

// Two NICs; what reaches b can be marked, and all CNPs are noted where they arrive.
struct CongestionWorld : World {
  explicit CongestionWorld(const WorldConfig& config) : World(config) {
    b.filter.lose = [this](const Frame& frame) {
      if (mark && frame.opcode != BthOpcode::cnp) const_cast<Frame&>(frame).ecn = Ecn::congestion_experienced;
      return note(frame);
    };
    a.filter.lose = [this](const Frame& frame) {
      if (mark_back) const_cast<Frame&>(frame).ecn = Ecn::congestion_experienced;
      return note(frame);
    };
  }
  bool note(const Frame& frame) {
    if (frame.opcode == BthOpcode::cnp) {
      cnps.push_back(frame);
      cnp_times.push_back(engine.now());
    } else if (frame.payload_bytes > 0) {
      data_times.push_back(engine.now());
    }
    return false;
  }
  void write(RcQueuePair& qp, std::uint32_t bytes) {
    World::write(qp, {.id = 1, .from = a.segment(0, bytes), .at = kTarget});
  }
  std::size_t sends_ok() {
    const std::vector<WorkCompletion> all = a.sends();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const WorkCompletion& one) {
      return one.status == CompletionStatus::success;
    }));
  }
  bool mark = false;
  bool mark_back = false;
  std::vector<Frame> cnps;
  std::vector<Picoseconds> cnp_times;
  std::vector<Picoseconds> data_times;
};

TEST(NicCongestion, marked_packet__causes_a_cnp_to_its_sender) {
  CongestionWorld world({.congestion = dcqcn()});
  const auto [qa, qb] = world.connect({.mtu = 1024, .ack_timeout = 0});
  world.mark = true;
  world.write(*qa, 1024);
  EXPECT_TRUE(world.run());
  ASSERT_EQ(world.cnps.size(), 1U);
  EXPECT_EQ(world.cnps[0].dst_qp, qa->number());
  EXPECT_EQ(world.cnps[0].dst_host, 0U);
  EXPECT_EQ(world.cnps[0].dscp, 48U);
  EXPECT_EQ(world.cnps[0].priority, 6U);
  EXPECT_EQ(world.cnps[0].ecn, Ecn::not_capable);
  EXPECT_EQ(world.cnps[0].wire_bytes, wire_bytes(BthOpcode::cnp, 0));
  EXPECT_EQ(world.b.nic.counters().cnps_tx, 1U);
  EXPECT_EQ(world.a.nic.counters().cnps_rx, 1U);
  EXPECT_LT(qa->congestion().rate(world.engine.now()), 51'000'000'000U);
  EXPECT_TRUE(world.at_rest());
  EXPECT_TRUE(qb->congestion().rate(world.engine.now()) == 100'000'000'000U);
}

TEST(NicCongestion, marked_packet__causes_nothing_without_dcqcn) {
  CongestionWorld world({});
  const auto [qa, qb] = world.connect({.mtu = 1024});
  world.mark = world.mark_back = true;
  world.write(*qa, 8192);
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.cnps.empty());
}

TEST(NicCongestion, marked_acknowledgement__causes_nothing) {
  CongestionWorld world({.congestion = dcqcn()});
  const auto [qa, qb] = world.connect({.mtu = 1024});
  world.mark_back = true;
  world.write(*qa, 8192);
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.cnps.empty());
}

// The third of eight packets is lost once, and nothing is marked.
TEST(NicCongestion, lost_packet__causes_a_cnp_with_the_nak_only_if_asked_for) {
  for (const LossRecovery recovery : {LossRecovery::go_back_n, LossRecovery::selective_repeat}) {
    for (const bool with_naks : {false, true}) {
      WorldConfig config{.recovery = {.kind = recovery}, .congestion = dcqcn()};
      config.congestion.cnp.with_naks = with_naks;
      CongestionWorld world(config);
      const auto [qa, qb] =
          world.connect({.mtu = 1024, .ack_timeout = 0});  // no timer in which rates recover
      int packets = 0;
      world.b.filter.lose = [&](const Frame& frame) { return frame.payload_bytes > 0 && ++packets == 3; };
      world.write(*qa, 8192);
      EXPECT_TRUE(world.run());
      EXPECT_EQ(world.sends_ok(), 1U);
      EXPECT_EQ(world.b.nic.counters().sequence_naks_tx, 1U);
      EXPECT_EQ(world.cnps.size(), with_naks ? 1U : 0U);
      EXPECT_EQ(qa->congestion().rate(world.engine.now()) < 51'000'000'000U, with_naks);
      EXPECT_TRUE(world.at_rest());
    }
  }
}

TEST(NicCongestion, cnps__keep_their_interval_and_delay) {
  WorldConfig config{.congestion = dcqcn()};
  config.congestion.cnp.delay = microseconds{3};
  CongestionWorld world(config);
  const auto [qa, qb] = world.connect({.mtu = 1024});
  world.mark = true;
  world.write(*qa, 400 * 1024);
  EXPECT_TRUE(world.run());
  ASSERT_GT(world.cnp_times.size(), 3U);
  // The first packet reaches b at data_times[0]; its CNP leaves 3 us later, and takes its own time and the
  // link's.
  const Picoseconds on_wire = Serialiser({100'000'000'000}).time_for(wire_bytes(BthOpcode::cnp, 0));
  EXPECT_EQ(world.cnp_times[0], world.data_times[0] + microseconds{3 + 1} + on_wire);
  for (std::size_t i = 1; i < world.cnp_times.size(); ++i) {
    EXPECT_GE(world.cnp_times[i] - world.cnp_times[i - 1], microseconds{9}) << i;
  }
}

// How many CNPs a burst of one marked packet on each of four queue pairs causes.
std::size_t cnps_of_four(CnpScope scope) {
  WorldConfig config{.congestion = dcqcn()};
  config.congestion.cnp.scope = scope;
  CongestionWorld world(config);
  world.mark = true;
  for (int i = 0; i < 4; ++i) world.write(*world.connect({.mtu = 1024}).first, 1024);
  EXPECT_TRUE(world.run());
  return world.cnps.size();
}

TEST(NicCongestion, cnp_scope__says_what_shares_the_interval) {
  EXPECT_EQ(cnps_of_four(CnpScope::queue_pair), 4U);
  EXPECT_EQ(cnps_of_four(CnpScope::address_pair), 1U);
  EXPECT_EQ(cnps_of_four(CnpScope::port), 1U);
}

TEST(NicCongestion, write__is_paced_at_the_rate) {
  WorldConfig config{.congestion = dcqcn()};
  // One cut to a quarter of the line, which nothing raises.
  config.congestion.dcqcn.rate_on_first_cnp = 25'000'000'000;
  config.congestion.dcqcn.rate_timer = std::chrono::seconds{1};
  config.congestion.dcqcn.byte_counter = 0;
  CongestionWorld world(config);
  const auto [qa, qb] = world.connect({.mtu = 1024});
  world.mark = true;
  world.write(*qa, 1024);
  world.run();
  world.mark = false;
  world.data_times.clear();
  world.write(*qa, 100 * 1024);
  EXPECT_TRUE(world.run());
  ASSERT_EQ(world.data_times.size(), 100U);
  const std::uint64_t bytes =
      98ULL * wire_bytes(BthOpcode::write_middle, 1024) + wire_bytes(BthOpcode::write_first, 1024);
  EXPECT_NEAR(static_cast<double>((world.data_times[99] - world.data_times[0]).count()),
              static_cast<double>(bytes) * 8 * 1e12 / 25e9, 2000);
  EXPECT_TRUE(world.at_rest());
}

TEST(NicCongestion, read_responses__are_paced_by_who_sends_them) {
  WorldConfig config{.congestion = dcqcn()};
  config.congestion.dcqcn.rate_on_first_cnp = 10'000'000'000;
  config.congestion.dcqcn.rate_timer = std::chrono::seconds{1};
  config.congestion.dcqcn.byte_counter = 0;
  CongestionWorld world(config);
  const auto [qa, qb] = world.connect({.mtu = 1024});
  const auto read = [&] {
    const std::vector<Segment> into{world.a.segment(0, 50 * 1024)};
    world.a.post(*qa, {.id = 2,
                       .segments = into,
                       .remote_addr = world.b.at(kTarget),
                       .rkey = world.b.keys.rkey,
                       .opcode = RequestOpcode::read});
    EXPECT_TRUE(world.run());
  };
  world.mark_back = true;
  read();
  EXPECT_GT(world.b.nic.counters().cnps_rx, 0U);
  world.mark_back = false;
  world.data_times.clear();
  const std::uint64_t rate = qb->congestion().rate(world.engine.now());
  read();
  ASSERT_EQ(world.data_times.size(), 50U);
  const std::uint64_t bytes = 48ULL * wire_bytes(BthOpcode::read_response_middle, 1024) +
                              wire_bytes(BthOpcode::read_response_first, 1024);
  EXPECT_NEAR(static_cast<double>((world.data_times[49] - world.data_times[0]).count()),
              static_cast<double>(bytes) * 8 * 1e12 / static_cast<double>(rate), 2000);
}

TEST(NicCongestion, idle_queue_pair__owns_no_event_though_its_rate_is_low) {
  WorldConfig config{.congestion = dcqcn()};
  CongestionWorld world(config);
  const auto [qa, qb] = world.connect({.mtu = 1024, .ack_timeout = 0});
  world.mark = true;
  world.write(*qa, 64 * 1024);
  EXPECT_TRUE(world.run());
  const std::uint64_t events = world.engine.events();
  EXPECT_LT(qa->congestion().rate(world.engine.now()), 100'000'000'000U);
  world.run(world.engine.now() + std::chrono::seconds{1});
  EXPECT_EQ(world.engine.events(), events);
  // And yet its timers have run: it is back at line rate.
  EXPECT_EQ(qa->congestion().rate(world.engine.now() + std::chrono::seconds{1}), 100'000'000'000U);
}

TEST(NicCongestion, swift__window_bounds_what_is_in_flight) {
  WorldConfig config;
  config.congestion.algorithm = CongestionAlgorithm::swift;
  config.congestion.swift = {.base_target = microseconds{1},  // always exceeded: the window never grows
                             .window_min = 4,
                             .window_initial = 4,
                             .flow_scaling_range = {}};
  CongestionWorld world(config);
  const auto [qa, qb] = world.connect({.mtu = 1024});
  world.write(*qa, 40 * 1024);
  EXPECT_TRUE(world.run());
  ASSERT_EQ(world.data_times.size(), 40U);
  // Four packets a round trip of more than 2 us: every fifth packet waits for the first's acknowledgement.
  for (std::size_t i = 4; i < 40; ++i)
    EXPECT_GT(world.data_times[i] - world.data_times[i - 4], microseconds{2});
  EXPECT_TRUE(world.at_rest());
}

TEST(NicCongestion, swift__recovers_from_the_loss_of_all_its_window) {
  WorldConfig config;
  config.congestion.algorithm = CongestionAlgorithm::swift;
  CongestionWorld world(config);
  const auto [qa, qb] = world.connect({.mtu = 1024, .ack_timeout = 1});
  int to_lose = 64;
  world.b.filter.lose = [&](const Frame&) { return to_lose-- > 0; };
  world.write(*qa, 64 * 1024);
  EXPECT_TRUE(world.run());
  EXPECT_TRUE(world.at_rest());
  EXPECT_TRUE(world.bytes_conserved());
  EXPECT_GT(world.a.nic.counters().timeouts, 0U);
}

}  // namespace
}  // namespace bx::sim
