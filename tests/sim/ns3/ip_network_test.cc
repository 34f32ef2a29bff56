// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/ip_network.h"

#include <gtest/gtest.h>
#include <ns3/boolean.h>
#include <ns3/config.h>
#include <ns3/global-value.h>

#include "sim/model/frame_bytes.h"
#include "tests/sim/ns3/ip_world.h"

namespace bx::sim {
namespace {

using testing::kForever;
using testing::kLossless;

// What a real host of 100 Gb/s has: full segments, and buffers above its bandwidth-delay product.
void set_tcp_defaults() {
  ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(1448));
  ns3::Config::SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(1U << 20U));
  ns3::Config::SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(1U << 20U));
}

class IpNetworkTest : public ::testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override { set_tcp_defaults(); }
};

TEST_P(IpNetworkTest, tcp__delivers_all_bytes) {
  IpWorld world({.engine = GetParam(), .hosts = 3});
  const auto one = world.start_tcp(0, 2, 3'000'000);
  const auto other = world.start_tcp(1, 2, 2'000'000);
  world.engine.run(kForever);
  EXPECT_EQ(one->GetTotalRx(), 3'000'000U);
  EXPECT_EQ(other->GetTotalRx(), 2'000'000U);
  EXPECT_EQ(world.frames.in_use(), 0U);
  EXPECT_EQ(world.ip->device(0).counters().queue_drops, 0U);
}

constexpr std::uint64_t kTcpBytes = 4'000'000;
constexpr unsigned kWrites = 10;

struct Outcome {
  std::uint64_t digest = 0;
  std::uint64_t tcp_bytes = 0;
  std::uint64_t tcp_bytes_at_roce_end = 0;
  std::uint64_t drops = 0;
  std::uint64_t pauses = 0;
  std::uint64_t retransmissions = 0;
  std::size_t roce_completions = 0;
  Picoseconds roce_end{};
};

// Both share the link into host 1: TCP from hosts 0 and 2, lossy; WRITEs from host 0, lossless. The switch's
// buffer is small enough for TCP to overflow its part of it.
Outcome run_both(EngineKind kind, unsigned tcp_senders) {
  IpWorldConfig config{.engine = kind, .hosts = 3};
  config.star.fabric.buffer.total_bytes = 1U << 20U;
  IpWorld world(config);
  std::vector<ns3::Ptr<ns3::PacketSink>> sinks;
  for (unsigned i = 0; i < tcp_senders; ++i) {
    sinks.push_back(world.start_tcp(i % 2 == 0 ? 2 : 0, 1, kTcpBytes));
  }
  const auto [a, b] = world.connect(0, 1);
  world.write(*a, 0, 1, 1U << 20U, kWrites);
  Outcome outcome;
  const auto tcp_bytes = [&] {
    std::uint64_t sum = 0;
    for (const auto& sink : sinks) sum += sink->GetTotalRx();
    return sum;
  };
  for (Picoseconds limit = microseconds{1}; outcome.roce_completions < kWrites; limit += microseconds{1}) {
    world.engine.run(limit);
    outcome.roce_completions += world.sides[0].sends().size();
  }
  outcome.roce_end = world.engine.now();
  outcome.tcp_bytes_at_roce_end = tcp_bytes();
  world.engine.run(kForever);
  outcome.tcp_bytes = tcp_bytes();
  outcome.digest = world.topology.digest().value();
  outcome.drops = world.topology.totals().drops;
  outcome.pauses = world.topology.totals().pause_frames;
  outcome.retransmissions = world.sides[0].nic.counters().packets_retransmitted;
  EXPECT_EQ(world.topology.totals().lossless_drops, 0U);
  EXPECT_EQ(world.frames.in_use(), 0U);
  return outcome;
}

// TCP from two hosts overflows the lossy queue and backs off; the lossless class loses nothing and is not
// paused. In host 0's port a packet of each class leaves in turn, and the switch serves priority 3 before 0:
// so RoCE takes at least its time alone, and at most that with a full TCP packet after each of its own.
TEST_P(IpNetworkTest, tcp__beside_roce_in_another_class) {
  const Outcome both = run_both(GetParam(), 4);
  EXPECT_EQ(both.tcp_bytes, 4 * kTcpBytes);
  EXPECT_EQ(both.roce_completions, kWrites);
  EXPECT_EQ(both.retransmissions, 0U);
  EXPECT_EQ(both.pauses, 0U);
  EXPECT_GT(both.drops, 0U);
  EXPECT_GT(both.tcp_bytes_at_roce_end, 0U);
  const Outcome alone = run_both(GetParam(), 0);
  constexpr std::int64_t kRoceWire = 4096 + kRoceOverheadBytes;
  EXPECT_GT(both.roce_end, alone.roce_end);
  EXPECT_LE(both.roce_end.count(), alone.roce_end.count() * (kRoceWire + 1538) / kRoceWire + 1'000'000);
}

TEST_P(IpNetworkTest, run__same_digest_twice) {
  EXPECT_EQ(run_both(GetParam(), 2).digest, run_both(GetParam(), 2).digest);
}

TEST(IpNetwork, run__same_digest_on_either_engine) {
  set_tcp_defaults();
  EXPECT_EQ(run_both(EngineKind::fast, 3).digest, run_both(EngineKind::stock, 3).digest);
}

INSTANTIATE_TEST_SUITE_P(engines, IpNetworkTest, ::testing::Values(EngineKind::fast, EngineKind::stock),
                         [](const auto& engine) {
                           return engine.param == EngineKind::fast ? "fast" : "stock";
                         });

// Every byte of the wire: 10 TCP segments of 1448 bytes need 52 bytes of IP and TCP headers with timestamps,
// and 38 around each packet.
TEST(IpNetwork, tcp__wire_bytes_are_exact) {
  set_tcp_defaults();
  IpWorld world;
  std::uint64_t sent = 0;
  std::uint64_t wire = 0;
  world.ip->device(0).TraceConnectWithoutContext(
      "PhyTxBegin", ns3::Callback<void, ns3::Ptr<const ns3::Packet>>([&](ns3::Ptr<const ns3::Packet> packet) {
        ++sent;
        const std::uint64_t without_padding = packet->GetSize() + 8 + 4 + 12;
        wire += std::max<std::uint64_t>(without_padding, 84);
      }));
  const auto sink = world.start_tcp(0, 1, 14'480);
  world.engine.run(kForever);
  EXPECT_EQ(sink->GetTotalRx(), 14'480U);
  EXPECT_EQ(world.sides[0].nic.port().counters().tx_frames, sent);
  EXPECT_EQ(world.sides[0].nic.port().counters().tx_bytes, wire);
  // 10 segments, of which each has 14 + 20 + 32 bytes of headers.
  EXPECT_GE(wire, 10U * (1448 + 38 + 52));
}

// A mark that a switch makes on the frame is in the IP header that the receiver sees, and nowhere else.
TEST(IpNetwork, ecn__marks_of_the_switch_reach_the_receiver) {
  set_tcp_defaults();
  ns3::Config::SetDefault("ns3::TcpSocketBase::UseEcn", ns3::StringValue("On"));
  IpWorldConfig config{.hosts = 3};
  config.star.fabric.ecn[0] = {.kmin_bytes = 20'000, .kmax_bytes = 60'000, .pmax = 0.5};
  IpWorld world(config);
  std::uint64_t marked = 0;
  world.ip->device(2).TraceConnectWithoutContext(
      "MacRx", ns3::Callback<void, ns3::Ptr<const ns3::Packet>>([&](ns3::Ptr<const ns3::Packet> packet) {
        marked += read_frame_fields(*packet).ecn == Ecn::congestion_experienced ? 1 : 0;
      }));
  const auto one = world.start_tcp(0, 2, 3'000'000);
  const auto other = world.start_tcp(1, 2, 3'000'000);
  world.engine.run(kForever);
  ns3::Config::SetDefault("ns3::TcpSocketBase::UseEcn", ns3::StringValue("Off"));
  EXPECT_EQ(one->GetTotalRx() + other->GetTotalRx(), 6'000'000U);
  EXPECT_GT(marked, 0U);
  EXPECT_EQ(marked, world.topology.totals().ecn_marks);
  EXPECT_EQ(world.topology.totals().drops, 0U);
}

// As captured at a host's port.
class FrameCheck final : public PortTap {
 public:
  void on_frame(const Port& /*port*/, Direction /*direction*/, const Frame& frame) override {
    std::array<std::byte, kCapturedBytesMax> bytes;
    const std::size_t size = write_frame(frame, host_mac(0), bytes);
    const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
    ASSERT_EQ(size, std::max<std::size_t>(60, 14 + frame.payload_bytes));
    EXPECT_EQ(frame.wire_bytes, size + 24);
    EXPECT_EQ(at(16) << 8U | at(17), frame.payload_bytes);
    EXPECT_EQ(at(15) & 3U, static_cast<unsigned>(frame.ecn));
    EXPECT_EQ(at(5), frame.dst_host);
    EXPECT_EQ(at(33), frame.dst_host + 1U);
    std::uint32_t sum = 0;
    for (std::size_t i = 14; i < 34; i += 2) sum += at(i) << 8U | at(i + 1);
    while ((sum >> 16U) != 0) sum = (sum & 0xffffU) + (sum >> 16U);
    EXPECT_EQ(sum, 0xffffU) << "IP checksum";
    ++frames;
    marked += frame.ecn == Ecn::congestion_experienced ? 1 : 0;
  }
  std::uint64_t frames = 0;
  std::uint64_t marked = 0;
};

TEST(IpNetwork, capture__frames_are_whole_with_marks_and_checksums) {
  set_tcp_defaults();
  ns3::Config::SetDefault("ns3::TcpSocketBase::UseEcn", ns3::StringValue("On"));
  ns3::GlobalValue::Bind("ChecksumEnabled", ns3::BooleanValue(true));
  FrameCheck check;
  {
    IpWorldConfig config{.hosts = 3};
    config.star.fabric.ecn[0] = {.kmin_bytes = 20'000, .kmax_bytes = 60'000, .pmax = 0.5};
    IpWorld world(config);
    world.sides[2].nic.port().set_tap(&check);
    const auto one = world.start_tcp(0, 2, 500'000);
    const auto other = world.start_tcp(1, 2, 500'000);
    world.engine.run(kForever);
    EXPECT_EQ(one->GetTotalRx() + other->GetTotalRx(), 1'000'000U);
  }
  ns3::GlobalValue::Bind("ChecksumEnabled", ns3::BooleanValue(false));
  ns3::Config::SetDefault("ns3::TcpSocketBase::UseEcn", ns3::StringValue("Off"));
  EXPECT_GT(check.frames, 1000U);
  EXPECT_GT(check.marked, 0U);
}

// A connection in a class that the switch takes for lossless is a RoCE citizen: no drop, pauses instead.
TEST(IpNetwork, tcp__in_a_lossless_class_is_paused_and_not_dropped) {
  set_tcp_defaults();
  IpWorldConfig config{.hosts = 4};
  config.star.fabric.buffer.total_bytes = 1U << 20U;
  IpWorld world(config);
  std::vector<ns3::Ptr<ns3::PacketSink>> sinks;
  for (std::uint16_t from = 1; from < 4; ++from)
    sinks.push_back(world.start_tcp(from, 0, 5'000'000, kLossless));
  world.engine.run(kForever);
  for (const auto& sink : sinks) EXPECT_EQ(sink->GetTotalRx(), 5'000'000U);
  EXPECT_EQ(world.topology.totals().drops, 0U);
  EXPECT_GT(world.topology.totals().pause_frames, 0U);
}

TEST(IpNetwork, queue_discs__deliver_all_bytes_and_stop_when_the_device_is_full) {
  set_tcp_defaults();
  IpWorldConfig config{.hosts = 3};
  config.ip = {.queue_size = ns3::QueueSize("10p"), .queue_discs = QueueDiscs::ns3_default};
  IpWorld world(config);
  const auto one = world.start_tcp(0, 2, 5'000'000);
  const auto other = world.start_tcp(0, 1, 5'000'000);
  world.engine.run(kForever);
  EXPECT_EQ(one->GetTotalRx() + other->GetTotalRx(), 10'000'000U);
  EXPECT_EQ(world.ip->device(0).counters().queue_drops, 0U);
}

TEST(IpNetwork, queue__a_full_one_drops_and_counts) {
  set_tcp_defaults();
  IpWorldConfig config{.hosts = 2};
  config.ip.queue_size = ns3::QueueSize("10p");
  IpWorld world(config);
  std::uint64_t traced = 0;
  world.ip->device(0).TraceConnectWithoutContext(
      "MacTxDrop", ns3::Callback<void, ns3::Ptr<const ns3::Packet>>([&](auto) { ++traced; }));
  const auto sink = world.start_tcp(0, 1, 5'000'000);
  world.engine.run(kForever);
  EXPECT_EQ(sink->GetTotalRx(), 5'000'000U);
  EXPECT_GT(traced, 0U);
  EXPECT_EQ(world.ip->device(0).counters().queue_drops, traced);
  EXPECT_EQ(world.ip->device(0).queues().drops(), traced);
}

TEST(IpNetwork, mtu_max__is_bounded_by_the_switches_frames) {
  IpWorldConfig config;
  config.star.fabric.buffer.frame_bytes_max = 1134;
  config.ip.mtu = 1000;
  IpWorld world(config);
  EXPECT_EQ(IpNetwork::mtu_max(world.topology), 1134 - 38);
  EXPECT_TRUE(world.ip->device(0).SetMtu(1096));
  EXPECT_FALSE(world.ip->device(0).SetMtu(1097));
}

}  // namespace
}  // namespace bx::sim
