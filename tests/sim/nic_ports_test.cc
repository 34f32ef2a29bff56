// SPDX-License-Identifier: GPL-2.0-only
// Two NICs of two ports each, a link for each pair of ports. Hosts 0 and 1 are a's ports, 2 and 3 are b's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/nic_world.h"

namespace bx::sim {
namespace {

using testing::ElementsAre;
using testing::Pair;
using A = QpAttr;

constexpr MemoryAccess kAll = MemoryAccess::local_write | MemoryAccess::remote_read |
                              MemoryAccess::remote_write | MemoryAccess::remote_atomic;

struct End {
  End(Engine& engine, FramePool& frames, std::uint16_t host)
      : nic(engine, frames,
            {.host = host, .rate = {100'000'000'000}, .more_hosts = {static_cast<std::uint16_t>(host + 1)}}),
        memory(1U << 20U),
        cq(*nic.create_cq(64, nullptr).value()),
        keys(nic.memory().add(memory, kAll).value()) {}
  RcQueuePair& make_qp() {
    return *nic.create_qp({.send_cq = &cq, .receive_cq = &cq, .send = {16, 1, 0}}).value();
  }
  static bool bring_up(RcQueuePair& qp, std::uint8_t port, const RcPath& path) {
    return qp.modify({.state = QpState::init, .access = kAll, .port = port},
                     A::state | A::pkey_index | A::port | A::access_flags) &&
           qp.to_ready_to_receive(path) && qp.to_ready_to_send();
  }
  Nic nic;
  std::vector<std::byte> memory;
  CompletionQueue& cq;
  MemoryKeys keys;
};

class TwoPorts : public testing::Test, public NicListener {
 protected:
  TwoPorts() : engine(EngineKind::fast), a(engine, frames, 0), b(engine, frames, 2) {
    for (std::uint8_t port = 0; port < 2; ++port) {
      Port::connect(a.nic.port(port), b.nic.port(port), microseconds{1});
    }
    a.nic.set_listener(this);
  }
  RcQueuePair& connect(std::uint8_t port) {
    RcQueuePair& qa = a.make_qp();
    RcQueuePair& qb = b.make_qp();
    const auto host = static_cast<std::uint16_t>(port - 1);
    EXPECT_TRUE(
        End::bring_up(qa, port, {.peer_host = static_cast<std::uint16_t>(2 + host), .peer_qp = qb.number()}));
    EXPECT_TRUE(End::bring_up(qb, port, {.peer_host = host, .peer_qp = qa.number()}));
    return qa;
  }
  void write(RcQueuePair& qp, std::uint32_t length) {
    const Segment from{reinterpret_cast<std::uintptr_t>(a.memory.data()), length, a.keys.lkey};
    const SendRequest request{.segments = {&from, 1},
                              .remote_addr = reinterpret_cast<std::uintptr_t>(b.memory.data()),
                              .rkey = b.keys.rkey,
                              .opcode = RequestOpcode::write};
    EXPECT_EQ(qp.post_send({&request, 1}), 1U);
    a.nic.ring(qp);
  }
  void on_nic_event(NicEventKind kind, std::uint32_t id) override { events.emplace_back(kind, id); }

  Engine engine;
  FramePool frames;
  End a;
  End b;
  std::vector<std::pair<NicEventKind, std::uint32_t>> events;
};

TEST_F(TwoPorts, queue_pair__sends_and_is_answered_on_the_port_it_is_bound_to) {
  for (const std::uint8_t port : {std::uint8_t{1}, std::uint8_t{2}}) {
    const auto mine = static_cast<std::uint8_t>(port - 1);
    const auto other = static_cast<std::uint8_t>(2 - port);
    const std::uint64_t before = a.nic.port(other).counters().tx_frames;
    write(connect(port), 10 * 4096);
    ASSERT_TRUE(engine.run(std::chrono::seconds{1}));
    const PortCounters& used = a.nic.port(mine).counters();
    EXPECT_EQ(used.tx_frames, 10U);
    EXPECT_EQ(used.rx_frames, 1U);
    EXPECT_EQ(a.nic.port(other).counters().tx_frames, before);
  }
  EXPECT_EQ(a.cq.size(), 2U);
}

TEST_F(TwoPorts, ports__send_at_the_same_time) {
  write(connect(1), 100 * 4096);
  write(connect(2), 100 * 4096);
  ASSERT_TRUE(engine.run(std::chrono::seconds{1}));
  // As one port alone: fetch, 100 packets with one RETH, an ACK and the delay both ways.
  const Picoseconds alone{(100 * (4096 + 82) + 16 + 86) * 80 + 2 * 1'000'000 + 300'000};
  EXPECT_EQ(a.nic.last_arrival(), alone);
}

TEST_F(TwoPorts, paused_port__does_not_hold_the_other) {
  RcQueuePair& first = connect(1);
  RcQueuePair& second = connect(2);
  b.nic.port(0).set_link(LinkState::down);  // no answers on the first
  write(first, 8);
  write(second, 8);
  engine.run(microseconds{10});
  EXPECT_EQ(a.cq.size(), 1U);
  EXPECT_EQ(first.requester().outstanding(), 1U);
  EXPECT_EQ(second.requester().outstanding(), 0U);
}

TEST_F(TwoPorts, events__name_the_port) {
  a.nic.port(1).set_link(LinkState::down);
  a.nic.port(0).set_link(LinkState::down);
  engine.run(microseconds{1});
  EXPECT_THAT(events, ElementsAre(Pair(NicEventKind::port_error, 2), Pair(NicEventKind::port_error, 1)));
}

TEST_F(TwoPorts, port__out_of_range_is_refused_and_may_change_in_sqd) {
  RcQueuePair& spare = a.make_qp();
  EXPECT_FALSE(End::bring_up(spare, 3, {}));
  RcQueuePair& qp = connect(1);
  write(qp, 8);
  ASSERT_TRUE(engine.run(std::chrono::seconds{1}));
  ASSERT_TRUE(qp.modify({.state = QpState::sq_drain}, A::state));
  RcQueuePair& peer = *b.nic.find_qp(qp.path().peer_qp);
  ASSERT_TRUE(peer.modify({.state = QpState::sq_drain}, A::state));
  ASSERT_TRUE(qp.modify({.port = 2, .path = {.peer_host = 3}}, A::port | A::av));
  ASSERT_TRUE(peer.modify({.port = 2, .path = {.peer_host = 1}}, A::port | A::av));
  ASSERT_TRUE(qp.modify({.state = QpState::ready_to_send}, A::state));
  write(qp, 8);
  ASSERT_TRUE(engine.run(std::chrono::seconds{1}));
  EXPECT_EQ(a.nic.port(1).counters().tx_frames, 1U);
  EXPECT_EQ(a.cq.size(), 2U);
}

}  // namespace
}  // namespace bx::sim
