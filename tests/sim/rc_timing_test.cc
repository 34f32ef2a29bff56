// SPDX-License-Identifier: GPL-2.0-only
// The reliable connection's times and its goodput under loss, against the standard's tables and closed forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "libbx/base/prng.h"
#include "tests/sim/nic_world.h"
#include "tests/sim/validation.h"

namespace bx::sim {
namespace {

using Status = CompletionStatus;

constexpr WorldConfig kNoLatency{.fetch_latency = Picoseconds{0}, .write_back_latency = Picoseconds{0}};

// IBA 1.4, 9.7.6.1.3: 4.096 us x 2^code; the first sending and retry_cnt more each wait that long.
TEST(rc_timing, ack_timeout__of_every_code_and_retry_count_to_the_picosecond) {
  for (std::uint8_t code = 1; code <= 20; ++code) {
    for (std::uint8_t retries = 0; retries <= 7; ++retries) {
      World world(kNoLatency);
      const auto [qa, qb] = world.connect({.ack_timeout = code, .retry_cnt = retries});
      std::uint32_t sent = 0;
      world.b.filter.lose = [&](const Frame&) { return ++sent > 0; };
      for (std::uint64_t id = 0; id < 4; ++id) world.a.post(*qa, {.id = id, .opcode = RequestOpcode::write});
      const Picoseconds wait{(std::int64_t{4'096'000} << code) * (retries + 1)};
      EXPECT_FALSE(world.run(wait - Picoseconds{1}));
      EXPECT_TRUE(world.a.sends().empty());
      world.run(wait);
      const auto done = world.a.sends();
      ASSERT_EQ(done.size(), 4U) << unsigned{code} << ' ' << unsigned{retries};
      for (std::size_t i = 0; i < done.size(); ++i) {
        EXPECT_EQ(done[i].id, i) << "flushed in the order of posting";
        EXPECT_EQ(done[i].status, i == 0 ? Status::retry_exceeded : Status::flushed);
      }
      EXPECT_TRUE(world.run());
      EXPECT_EQ(sent, 4U * (retries + 1U));
    }
  }
}

// IBA 1.4, 9.7.5.2.8, table 46, in units of 10 us.
constexpr std::array<std::int64_t, 32> kRnrTable{
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

// An attempt is a SEND of 84 bytes on the wire, its NAK of 86, and the link's delay both ways.
TEST(rc_timing, rnr_timer__of_every_code_and_its_exhaustion_to_the_picosecond) {
  const Picoseconds attempt = Picoseconds{(84 + 86) * 80} + 2 * microseconds{1};
  for (std::uint8_t code = 0; code < 32; ++code) {
    for (std::uint8_t retries = 0; retries <= 6; ++retries) {
      World world(kNoLatency);
      const auto [qa, qb] = world.connect({.rnr_retry = retries, .min_rnr_timer = code});
      world.a.post(*qa, {.id = 1});
      world.a.post(*qa, {.id = 2, .opcode = RequestOpcode::write});
      const Picoseconds wait = microseconds{10 * kRnrTable[code]};
      const Picoseconds end = attempt * (retries + 1) + wait * retries;
      world.run(end - Picoseconds{1});
      EXPECT_TRUE(world.a.sends().empty()) << unsigned{code} << ' ' << unsigned{retries};
      world.run(end);
      const auto done = world.a.sends();
      ASSERT_EQ(done.size(), 2U) << unsigned{code} << ' ' << unsigned{retries};
      EXPECT_EQ(done[0].status, Status::rnr_retry_exceeded);
      EXPECT_EQ(done[1].status, Status::flushed);
      EXPECT_EQ(world.b.nic.counters().rnr_naks_tx, retries + 1U);
    }
  }
}

// --- Goodput under random loss.

struct LossRun {
  Picoseconds time{};
  std::uint64_t packets = 0;
  std::uint64_t timeouts = 0;
};

constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kMessagePackets = 1024;
constexpr std::uint32_t kMessages = 250;
constexpr std::uint32_t kAckInterval = 64;
constexpr std::uint8_t kTimeoutCode = 3;

LossRun run_with_loss(double p, const RecoveryConfig& recovery) {
  World world({.ack_interval = kAckInterval, .recovery = recovery});
  const auto [qa, qb] = world.connect({.mtu = kMtu, .ack_timeout = kTimeoutCode});
  Prng random(static_cast<std::uint64_t>(p * 1e6));
  world.b.filter.lose = [&](const Frame&) { return random.chance(p); };
  const Segment from = world.a.segment(0, kMessagePackets * kMtu);
  for (std::uint64_t id = 0; id < kMessages; ++id) {
    world.write(*qa, {.id = id, .from = from});
  }
  EXPECT_TRUE(world.run());
  const auto done = world.a.sends();
  EXPECT_EQ(done.size(), kMessages);
  EXPECT_EQ(done.back().status, Status::success);
  return {world.a.nic.last_arrival(), kMessages * kMessagePackets, world.a.nic.counters().timeouts};
}

constexpr double kPacketPs = (kMtu + 82) * 80.0;  // at 100 Gb/s
constexpr double kTimeoutPs = 4'096'000.0 * (1U << kTimeoutCode);

// Go-back-N over a saturated link, each packet lost with probability p, no ACK lost. A packet of t that
// arrives costs t. When it is lost, everything sent until it is sent again is wasted: the NAK leaves when the
// next packet arrives, which is the j-th after it with probability (1 - p) p^(j-1), and takes effect between
// packets, so the loss costs C1 = t (1 + j + ceil((2 d + a) / t)), with the delay d and the NAK's a; E[j] =
// 1 / (1 - p). That is the window W of packets outstanding at a loss event. A second loss of the same packet
// brings no NAK, for there is one a gap (IBA 1.4, 9.7.5.2.3): the ACK timer, started by the first packet that
// asks, ack_interval packets on, ends it after C2 = ack_interval t + T. Of the second and later losses there
// are p^2 / (1 - p) a packet. So
//
//   E[time a packet] = t + p C1 + p^2 / (1 - p) C2.
double go_back_n_packet_ps(double p) {
  const double round_trip = 2e6 + 86 * 80.0;
  const double c1 = kPacketPs * (1 + 1 / (1 - p) + std::ceil(round_trip / kPacketPs));
  const double c2 = kAckInterval * kPacketPs + kTimeoutPs;
  return kPacketPs + p * c1 + p * p / (1 - p) * c2;
}

class LossGoodput : public ::testing::TestWithParam<double> {};

TEST_P(LossGoodput, go_back_n__is_the_closed_form_within_two_percent) {
  const double p = GetParam();
  const LossRun run = run_with_loss(p, {});
  const double packet_ps = static_cast<double>(run.time.count()) / static_cast<double>(run.packets);
  testing::validate({.section = "Go-back-N goodput under loss",
                     .what = fmt::format("{} packets of 1024 B at 100 Gb/s, loss {} %", run.packets, 100 * p),
                     .against = "1 / (t + p C1 + p^2 / (1 - p) C2), derived in rc_timing_test.cc",
                     .expected = kMtu * 8000.0 / go_back_n_packet_ps(p),
                     .measured = kMtu * 8000.0 / packet_ps,
                     .unit = "Gb/s",
                     .tolerance = 0.02});
}

// Selective repeat sends t / (1 - p) a packet; what it loses beyond that are timeouts for packets lost twice,
// each at most a timeout and a window sent again.
TEST_P(LossGoodput, selective_repeat__sends_little_more_than_what_was_lost) {
  const double p = GetParam();
  constexpr std::uint32_t kWindow = 128;
  const LossRun run = run_with_loss(p, {.kind = LossRecovery::selective_repeat, .window_packets = kWindow});
  const double measured = static_cast<double>(run.time.count()) / static_cast<double>(run.packets);
  const double least = kPacketPs / (1 - p);
  const double timeout = kTimeoutPs + 2 * kWindow * kPacketPs;
  const double most =
      least + static_cast<double>(run.timeouts) * timeout / static_cast<double>(run.packets) + 0.01 * least;
  EXPECT_GT(measured, 0.99 * least);
  EXPECT_LT(measured, most) << "at p = " << p;
  EXPECT_LT(measured, go_back_n_packet_ps(p));
}
INSTANTIATE_TEST_SUITE_P(losses, LossGoodput, ::testing::Values(0.0001, 0.001, 0.003, 0.01));

}  // namespace
}  // namespace bx::sim
