// SPDX-License-Identifier: GPL-2.0-only
// Two NICs over a real pair of ports: every opcode, every size, every fault that needs no loss.
#include "sim/model/nic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using Status = CompletionStatus;

constexpr std::size_t kSource = 0;        // in the memory of the sender
constexpr std::size_t kTarget = 1 << 19;  // in that of the receiver

std::vector<Status> statuses(const std::vector<WorkCompletion>& completions) {
  std::vector<Status> out;
  for (const WorkCompletion& c : completions) out.push_back(c.status);
  return out;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

// --- Messages of every size at every MTU.

struct SizeCase {
  std::uint32_t mtu;
  std::uint32_t length;
};
class NicSizes : public testing::TestWithParam<SizeCase> {};

std::vector<SizeCase> all_sizes() {
  std::vector<SizeCase> cases;
  for (std::uint32_t mtu : {256U, 512U, 1024U, 2048U, 4096U}) {
    for (std::uint32_t length : {0U, 1U, mtu - 1, mtu, mtu + 1, 10 * mtu}) cases.push_back({mtu, length});
  }
  return cases;
}

TEST_P(NicSizes, every_opcode__moves_exactly_the_bytes) {
  const auto [mtu, length] = GetParam();
  World world;
  const auto [qa, qb] = world.connect({.mtu = mtu});
  world.a.fill(kSource, length, 1);
  world.b.fill(kSource, length, 2);
  std::vector<Segment> from;
  std::vector<Segment> into;
  if (length > 0) {
    from = {world.a.segment(kSource, length)};
    into = {world.b.segment(kTarget, length)};
  }
  world.b.receive_into(70, into);
  world.b.receive_into(71, into);
  world.b.receive_into(72, {});
  SendRequest request{.id = 1,
                      .segments = from,
                      .remote_addr = world.b.at(kTarget + 100'000),
                      .rkey = world.b.keys.rkey,
                      .imm = 77};
  for (const RequestOpcode opcode : {RequestOpcode::send, RequestOpcode::send_with_imm, RequestOpcode::write,
                                     RequestOpcode::write_with_imm}) {
    request.opcode = opcode;
    EXPECT_EQ(world.a.post(*qa, request), 1U);
    ++request.id;
  }
  std::vector<Segment> back;
  if (length > 0) back = {world.a.segment(kTarget, length)};
  request = {.id = 5,
             .segments = back,
             .remote_addr = world.b.at(kSource),
             .rkey = world.b.keys.rkey,
             .opcode = RequestOpcode::read};
  world.a.post(*qa, request);
  ASSERT_TRUE(world.run());

  const auto sent = world.a.sends();
  ASSERT_EQ(sent.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(sent[i].id, i + 1);
    EXPECT_EQ(sent[i].status, Status::success);
  }
  EXPECT_EQ(sent[4].byte_len, length);
  const auto received = world.b.receives();
  ASSERT_EQ(received.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(received[i].id, 70 + i);
    EXPECT_EQ(received[i].status, Status::success);
    EXPECT_EQ(received[i].byte_len, length);
    EXPECT_EQ(received[i].has_imm, i > 0);
    EXPECT_EQ(received[i].imm, i > 0 ? 77U : 0U);
  }
  EXPECT_EQ(received[2].opcode, CompletionOpcode::recv_write_imm);
  const auto original = world.a.bytes(kSource, length);
  EXPECT_TRUE(same(world.b.bytes(kTarget, length), original));
  EXPECT_TRUE(same(world.b.bytes(kTarget + 100'000, length), original));
  EXPECT_TRUE(same(world.a.bytes(kTarget, length), world.b.bytes(kSource, length)));
  // Nothing beyond the message was touched.
  EXPECT_EQ(world.b.memory[kTarget + length], std::byte{0});
  EXPECT_EQ(world.a.memory[kTarget + length], std::byte{0});
  EXPECT_TRUE(world.at_rest());
  EXPECT_TRUE(world.bytes_conserved());
}
INSTANTIATE_TEST_SUITE_P(all, NicSizes, testing::ValuesIn(all_sizes()), [](const auto& param_info) {
  return "mtu" + std::to_string(param_info.param.mtu) + "_bytes" + std::to_string(param_info.param.length);
});

TEST(nic, atomics__add_swap_and_return_the_original) {
  World world;
  const auto [qa, qb] = world.connect();
  const std::uint64_t start = 40;
  std::memcpy(&world.b.memory[kTarget], &start, 8);
  const auto result = [&](std::size_t slot) {
    std::uint64_t value = 0;
    std::memcpy(&value, &world.a.memory[8 * slot], 8);
    return value;
  };
  std::array<Segment, 3> into{};
  for (std::size_t i = 0; i < 3; ++i) into[i] = world.a.segment(8 * i, 8);
  SendRequest request{.id = 1,
                      .segments = {&into[0], 1},
                      .remote_addr = world.b.at(kTarget),
                      .rkey = world.b.keys.rkey,
                      .compare_add = 2,
                      .opcode = RequestOpcode::fetch_add};
  world.a.post(*qa, request);
  request = {.id = 2,
             .segments = {&into[1], 1},
             .remote_addr = world.b.at(kTarget),
             .rkey = world.b.keys.rkey,
             .compare_add = 42,
             .swap = 7,
             .opcode = RequestOpcode::cmp_swap};
  world.a.post(*qa, request);
  request.id = 3;  // compares with 42 again: no swap now
  request.swap = 9;
  request.segments = {&into[2], 1};
  world.a.post(*qa, request);
  ASSERT_TRUE(world.run());
  EXPECT_THAT(statuses(world.a.sends()),
              testing::ElementsAre(Status::success, Status::success, Status::success));
  EXPECT_EQ(result(0), 40U);
  EXPECT_EQ(result(1), 42U);
  EXPECT_EQ(result(2), 7U);
  std::uint64_t end = 0;
  std::memcpy(&end, &world.b.memory[kTarget], 8);
  EXPECT_EQ(end, 7U);
}

TEST(nic, segments__are_gathered_and_scattered_in_order) {
  World world;
  const auto [qa, qb] = world.connect({.mtu = 256});
  world.a.fill(0, 4096, 3);
  const std::array<Segment, 4> from{world.a.segment(3000, 301), world.a.segment(100, 1),
                                    world.a.segment(50, 0), world.a.segment(1000, 700)};
  world.b.receive_into(1, {world.b.segment(0, 2), world.b.segment(5000, 600), world.b.segment(9000, 1000)});
  world.a.post(*qa, {.id = 1, .segments = from});
  ASSERT_TRUE(world.run());
  ASSERT_THAT(statuses(world.b.receives()), testing::ElementsAre(Status::success));
  std::vector<std::byte> sent;
  for (const Segment& s : from) {
    const auto* begin = memory_at(s.addr);
    sent.insert(sent.end(), begin, begin + s.length);
  }
  std::vector<std::byte> got;
  for (const auto& [offset, length] : {std::pair{0, 2}, {5000, 600}, {9000, 400}}) {
    const auto bytes = world.b.bytes(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
    got.insert(got.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(got, sent);
}

TEST(nic, inlined__copies_at_post_and_needs_no_key) {
  World world;
  const auto [qa, qb] = world.connect();
  std::array<std::byte, 100> here{};
  here.fill(std::byte{5});
  const Segment from{reinterpret_cast<std::uintptr_t>(here.data()), 100, 0};
  world.b.receive_into(1, {world.b.segment(0, 100)});
  world.a.post(*qa, {.id = 1, .segments = {&from, 1}, .inlined = true});
  here.fill(std::byte{9});  // after the post: the message must not change
  ASSERT_TRUE(world.run());
  EXPECT_THAT(statuses(world.a.sends()), testing::ElementsAre(Status::success));
  EXPECT_TRUE(std::ranges::all_of(world.b.bytes(0, 100), [](std::byte b) { return b == std::byte{5}; }));
}

TEST(nic, unsignaled__is_retired_by_the_next_signaled_one) {
  World world({.send_depth = 4});
  const auto [qa, qb] = world.connect();
  SendRequest request{.remote_addr = world.b.at(0),
                      .rkey = world.b.keys.rkey,
                      .opcode = RequestOpcode::write,
                      .signaled = false};
  for (request.id = 1; request.id <= 3; ++request.id) EXPECT_EQ(world.a.post(*qa, request), 1U);
  ASSERT_TRUE(world.run());
  request.signaled = true;
  EXPECT_EQ(world.a.post(*qa, request), 1U);
  EXPECT_EQ(world.a.post(*qa, request), 0U) << "four slots are in use though three requests are complete";
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.a.post(*qa, request), 0U) << "complete, but not polled";
  EXPECT_EQ(world.a.sends().size(), 1U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(world.a.post(*qa, request), 1U);
}

TEST(nic, fenced__waits_for_earlier_reads) {
  World world;
  const auto [qa, qb] = world.connect();
  // The READ fetches what the WRITE behind it changes: fenced, it must see the old bytes even when its own
  // response is slow, for instance because it is long.
  constexpr std::uint32_t kLength = 200'000;
  world.b.fill(kTarget, kLength, 1);
  const std::vector<std::byte> old(world.b.memory.begin() + kTarget,
                                   world.b.memory.begin() + kTarget + kLength);
  world.a.fill(kTarget, kLength, 2);
  const Segment into = world.a.segment(0, kLength);
  const Segment from = world.a.segment(kTarget, kLength);
  world.a.post(*qa, {.id = 1,
                     .segments = {&into, 1},
                     .remote_addr = world.b.at(kTarget),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::read});
  world.a.post(*qa, {.id = 2,
                     .segments = {&from, 1},
                     .remote_addr = world.b.at(kTarget),
                     .rkey = world.b.keys.rkey,
                     .opcode = RequestOpcode::write,
                     .fenced = true});
  ASSERT_TRUE(world.run());
  EXPECT_TRUE(same(world.a.bytes(0, kLength), old));
  EXPECT_TRUE(same(world.b.bytes(kTarget, kLength), world.a.bytes(kTarget, kLength)));
}

TEST(nic, reads__outstanding_are_limited) {
  World world({.delay = microseconds{50}});
  const auto [qa, qb] = world.connect({.rd_atomic_max = 3});
  std::uint64_t requests = 0;
  world.b.filter.lose = [&](const Frame& f) {
    requests += f.opcode == BthOpcode::read_request ? 1 : 0;
    return false;
  };
  std::array<Segment, 8> into{};
  for (std::size_t i = 0; i < 8; ++i) {
    into[i] = world.a.segment(i * 64, 64);
    world.a.post(*qa, {.id = i,
                       .segments = {&into[i], 1},
                       .remote_addr = world.b.at(0),
                       .rkey = world.b.keys.rkey,
                       .opcode = RequestOpcode::read});
  }
  EXPECT_FALSE(world.run(microseconds{99}));  // before the first response is back
  EXPECT_EQ(requests, 3U);
  ASSERT_TRUE(world.run());
  EXPECT_EQ(world.a.sends().size(), 8U);
}

// --- Wire sizes, latency and rate.

TEST(nic, throughput__is_the_closed_form_of_the_link) {
  World world;
  const auto [qa, qb] = world.connect();
  constexpr std::uint32_t kPackets = 100;
  constexpr std::uint32_t kLength = kPackets * 4096;
  const Segment from = world.a.segment(0, kLength);
  world.write(*qa, {.id = 1, .from = from});
  world.a.send_cq.arm(ArmFor::any);
  Picoseconds done{};
  while (world.a.wakes.empty()) {
    ASSERT_FALSE(world.engine.run(world.engine.now() + nanoseconds{1}));
    done = world.engine.now();
  }
  // Fetch, 100 packets with one RETH, propagation, the ACK (86 bytes) and back, write-back: at 80 ps a byte.
  const std::int64_t wire_bytes = kPackets * (4096 + 82) + 16 + 86;
  const Picoseconds expected{wire_bytes * 80 + 2 * 1'000'000 + 2 * 300'000};
  EXPECT_GE(done, expected);
  EXPECT_LT(done - expected, nanoseconds{1});
}

TEST(nic, latencies__are_pipelined) {
  // With latencies a hundred times a packet's serialisation the rate is still the link's.
  World world({.fetch_latency = microseconds{30}, .write_back_latency = microseconds{30}});
  const auto [qa, qb] = world.connect();
  const Segment from = world.a.segment(0, 4096);
  for (std::uint64_t id = 0; id < 100; ++id) {
    world.write(*qa, {.id = id, .from = from});
  }
  const Picoseconds last{100LL * (4096 + 82 + 16) * 80 + 86 * 80 + 2 * 1'000'000 + 60'000'000};
  ASSERT_FALSE(world.run(last - Picoseconds{1}));
  EXPECT_EQ(world.a.sends().size(), 99U);
  world.run(last);
  EXPECT_EQ(world.a.sends().size(), 1U);
}

TEST(nic, arbitration__serves_queue_pairs_and_read_responses_in_turn) {
  World world;
  const auto [qa1, qb1] = world.connect();
  const auto [qa2, qb2] = world.connect();
  // b sends a long WRITE on its first queue pair while it answers a long READ on the second.
  constexpr std::uint32_t kLength = 50 * 4096;
  const Segment into = world.a.segment(0, kLength);
  const Segment from = world.b.segment(0, kLength);
  std::vector<bool> is_read;
  world.a.filter.lose = [&](const Frame& f) {
    if (f.payload_bytes > 0) is_read.push_back(f.opcode >= BthOpcode::read_response_first);
    return false;
  };
  world.a.post(*qa2, {.id = 1,
                      .segments = {&into, 1},
                      .remote_addr = world.b.at(0),
                      .rkey = world.b.keys.rkey,
                      .opcode = RequestOpcode::read});
  world.b.post(*qb1, {.id = 2,
                      .segments = {&from, 1},
                      .remote_addr = world.a.at(kTarget),
                      .rkey = world.a.keys.rkey,
                      .opcode = RequestOpcode::write});
  ASSERT_TRUE(world.run());
  ASSERT_EQ(is_read.size(), 100U);
  const auto both = std::find(is_read.begin(), is_read.end(), true);
  for (auto i = both; i + 1 < is_read.begin() + 50; ++i) EXPECT_NE(*i, *(i + 1)) << "they take turns";
}

// The other end of a NIC's link: sends what it is told and notes what arrives.
class Peer final : public PortOwner {
 public:
  Peer(Engine& engine, FramePool& frames, Rate rate)
      : frames_(frames), port_(engine, frames, *this, 1, rate) {}
  Port& port() { return port_; }
  void send(Frame* frame) {
    queue_.push(frame);
    port_.kick();
  }
  NextFrame next_frame(Port& /*port*/) override { return queue_.empty() ? nullptr : queue_.pop(); }
  void receive(Port& /*port*/, Frame* frame) override {
    arrived.push_back(*frame);
    frames_.free(frame);
  }
  void transmitted(Port& /*port*/, std::uint32_t /*b*/, std::uint8_t /*p*/, std::uint16_t /*i*/) override {}
  std::vector<Frame> arrived;

 private:
  FramePool& frames_;
  FrameQueue queue_;
  Port port_;
};

TEST(nic, paused_priority__sends_nothing_and_others_go_on) {
  Engine engine(EngineKind::fast);
  FramePool frames;
  const WorldConfig config;
  Side a(engine, frames, config, 0);
  Peer peer(engine, frames, {config.rate_bps});
  Port::connect(a.nic.port(), peer.port(), config.delay);
  Frame* pause = frames.make();
  pause->kind = FrameKind::pfc;
  pause->wire_bytes = kMinimumWireBytes;
  pause->pfc_enable = 1U << 3U;
  pause->pfc_quanta[3] = 65535;  // 335.5 us at 100 Gb/s
  peer.send(pause);
  engine.run(microseconds{5});
  const Segment from = a.segment(0, 8192);
  for (const unsigned priority : {3U, 5U}) {
    RcQueuePair& qp = a.make_qp();
    World::bring_up(qp, {.peer_host = 1, .traffic_class = static_cast<std::uint8_t>(priority << 5U)});
    a.post(qp, {.id = priority, .segments = {&from, 1}});
  }
  engine.run(microseconds{300});
  ASSERT_EQ(peer.arrived.size(), 2U);
  EXPECT_EQ(peer.arrived[0].priority, 5);
  engine.run(microseconds{400});
  ASSERT_EQ(peer.arrived.size(), 4U);
  EXPECT_EQ(peer.arrived[2].priority, 3);
}

}  // namespace
}  // namespace bx::sim
