// SPDX-License-Identifier: GPL-2.0-only
// Faults on hosts without a NIC model (links and switches), and on two NICs around a switch.
#include "sim/model/fault_injector.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "tests/sim/nic_world.h"
#include "tests/sim/traffic.h"

namespace bx::sim {
namespace {

using namespace fault_field;
using testing::Net;
using testing::star_config;

constexpr std::uint64_t kMtu = 4096;

// Two hosts with NICs, one switch.
struct Pair {
  explicit Pair(std::vector<FaultSpec> plan, const WorldConfig& config = {})
      : engine(config.engine),
        topology(engine, frames, star_config(2, 4U << 20U).topology(), Prng(1)),
        a(engine, frames, config, 0),
        b(engine, frames, config, 1) {
    a.nic.set_filter(nullptr);
    b.nic.set_filter(nullptr);
    topology.connect_host(0, a.nic.port());
    topology.connect_host(1, b.nic.port());
    faults.emplace(engine, frames, topology, std::vector<Nic*>{&a.nic, &b.nic}, plan, Prng(7));
  }
  std::pair<RcQueuePair*, RcQueuePair*> connect(RcPath path = {}) {
    RcQueuePair& qa = a.make_qp();
    RcQueuePair& qb = b.make_qp();
    path.mtu = kMtu;
    path.send_psn = 0xfffff0;  // wraps soon
    path.receive_psn = 77;
    path.peer_host = 1;
    path.peer_qp = qb.number();
    path.traffic_class = 104;  // DSCP 26: priority 3
    World::bring_up(qa, path);
    std::swap(path.send_psn, path.receive_psn);
    path.peer_host = 0;
    path.peer_qp = qa.number();
    World::bring_up(qb, path);
    return {&qa, &qb};
  }
  // One request of whole packets, and what came of it.
  CompletionStatus transfer(RcQueuePair& qp, RequestOpcode opcode, std::uint32_t packets) {
    const Segment segment = a.segment(0, packets * static_cast<std::uint32_t>(kMtu));
    a.post(
        qp,
        {.id = 1, .segments = {&segment, 1}, .remote_addr = b.at(0), .rkey = b.keys.rkey, .opcode = opcode});
    engine.run(std::chrono::seconds{100});
    const std::vector<WorkCompletion> done = a.sends();
    EXPECT_EQ(done.size(), 1U);
    return done.empty() ? CompletionStatus::fatal : done[0].status;
  }
  FaultRecord record(std::size_t i = 0) { return faults->records()[i]; }

  Engine engine;
  FramePool frames;
  Topology topology;
  Side a;
  Side b;
  std::optional<FaultInjector> faults;
};

FaultSpec packet(FaultKind kind, std::uint32_t psn, std::uint32_t iteration = 1) {
  return {
      .kind = kind, .target = "host0:qp1", .psn = psn, .iteration = iteration, .given = kPsn | kIteration};
}

TEST(PacketFault, drop__the_named_packet_once_and_go_back_n_sends_it_and_the_rest_again) {
  Pair pair({packet(FaultKind::drop, 5)});
  const auto [qa, qb] = pair.connect();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 32), CompletionStatus::success);
  EXPECT_EQ(pair.record().hits, 1U);
  EXPECT_EQ(pair.b.nic.counters().sequence_naks_tx, 1U);
  EXPECT_GE(pair.a.nic.counters().packets_retransmitted, 1U);
  EXPECT_EQ(pair.a.nic.counters().timeouts, 0U);
  EXPECT_EQ(pair.frames.in_use(), 0U);
}

TEST(PacketFault, drop__the_second_transmission_too) {
  Pair pair({packet(FaultKind::drop, 5), packet(FaultKind::drop, 5, 2)});
  const auto [qa, qb] = pair.connect();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 32), CompletionStatus::success);
  EXPECT_EQ(pair.record(0).hits, 1U);
  EXPECT_EQ(pair.record(1).hits, 1U);
  // Until the expected packet has come a responder sends no second NAK (IBA 1.4, 9.7.5.1.5): a timeout.
  EXPECT_EQ(pair.a.nic.counters().timeouts, 1U);
}

TEST(PacketFault, drop__an_answer_of_a_read) {
  FaultSpec fault = packet(FaultKind::drop, 5);
  fault.packets = FaultPackets::answers;
  fault.target = "host1:qp1";
  Pair pair({fault, packet(FaultKind::drop, 5)});
  const auto [qa, qb] = pair.connect();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::read, 32), CompletionStatus::success);
  EXPECT_EQ(pair.record(0).hits, 1U);
  EXPECT_GE(pair.a.nic.counters().implied_naks, 1U);
}

TEST(PacketFault, drop__a_packet_that_is_never_sent_hits_nothing) {
  Pair pair({packet(FaultKind::drop, 32), packet(FaultKind::drop, 3, 2)});
  const auto [qa, qb] = pair.connect();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 32), CompletionStatus::success);
  EXPECT_EQ(pair.record(0).hits + pair.record(1).hits, 0U);
  EXPECT_EQ(pair.a.nic.counters().packets_retransmitted, 0U);
}

TEST(PacketFault, corrupt__fails_its_icrc_at_the_receiver) {
  Pair pair({packet(FaultKind::corrupt, 0)});
  const auto [qa, qb] = pair.connect();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 8), CompletionStatus::success);
  EXPECT_EQ(pair.b.nic.counters().icrc_errors, 1U);
  EXPECT_EQ(pair.b.nic.counters().packets_discarded, 0U);
  EXPECT_EQ(pair.b.nic.counters().sequence_naks_tx, 1U);
}

TEST(PacketFault, reorder__is_overtaken_and_delay_is_not) {
  for (const FaultKind kind : {FaultKind::reorder, FaultKind::delay}) {
    FaultSpec fault = packet(kind, 3);
    fault.delay = microseconds{2};
    fault.given |= kDelay;
    Pair pair({fault});
    const auto [qa, qb] = pair.connect();
    EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 32), CompletionStatus::success);
    EXPECT_EQ(pair.record().hits, 1U);
    EXPECT_EQ(pair.b.nic.counters().packets_out_of_order > 0, kind == FaultKind::reorder);
  }
}

TEST(QueuePairFault, qp_error__flushes_here_and_exhausts_retries_there) {
  Pair pair({{.kind = FaultKind::qp_error, .target = "host1:qp1", .at = microseconds{5}}});
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 64), CompletionStatus::retry_exceeded);
  EXPECT_EQ(qb->state(), QpState::error);
  ASSERT_FALSE(pair.b.events.empty());
  EXPECT_EQ(pair.b.events[0], std::pair(NicEventKind::qp_fatal, qb->number()));
  EXPECT_EQ(pair.record().hits, 1U);
  EXPECT_EQ(pair.faults->pending(), 0U);
}

TEST(QueuePairFault, nic_reset__fails_all_queue_pairs_and_cuts_the_link_for_a_while) {
  Pair pair({{.kind = FaultKind::nic_reset,
              .target = "host1",
              .at = microseconds{5},
              .duration = microseconds{50},
              .given = kDuration}});
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 64), CompletionStatus::retry_exceeded);
  EXPECT_EQ(qb->state(), QpState::error);
  EXPECT_GT(pair.topology.totals().link_losses, 0U);
  EXPECT_EQ(pair.b.nic.port().link_state(), LinkState::up);
}

TEST(NicFault, slow_receiver__pauses_its_switch_port_and_loses_nothing) {
  Pair pair(
      {{.kind = FaultKind::slow_receiver, .target = "host1", .rate = {10'000'000'000}, .given = kRate}});
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 200), CompletionStatus::success);
  // Of 200 * 4178 bytes all but what the buffer held at the end passed at 10 Gb/s.
  EXPECT_GT(pair.record().hits, 0U);
  EXPECT_EQ(pair.topology.totals().lossless_drops, 0U);
  EXPECT_EQ(pair.a.nic.counters().packets_retransmitted, 0U);
  EXPECT_EQ(pair.frames.in_use(), 0U);
  EXPECT_NEAR(static_cast<double>(pair.b.nic.last_arrival().count()) * 1e-6,
              (200 * 4178 - SlowReceiver::kXoffBytes) * 8 / 10e3, 80.0);
}

TEST(NicFault, slow_receiver__ends_and_lets_go_of_what_it_held) {
  Pair pair({{.kind = FaultKind::slow_receiver,
              .target = "host1",
              .duration = microseconds{30},
              .rate = {1'000'000},
              .given = kRate | kDuration}});
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 200), CompletionStatus::success);
  EXPECT_LT(pair.b.nic.last_arrival(), microseconds{200});
  EXPECT_EQ(pair.topology.switch_at(0).port(1).paused_mask(), 0);
}

// The NIC's own filter loses the fifth frame; the slow receiver stands before it while it lasts.
TEST(NicFault, slow_receiver__stands_before_another_filter_and_gives_it_back) {
  Pair pair({{.kind = FaultKind::slow_receiver,
              .target = "host1",
              .duration = microseconds{30},
              .rate = {10'000'000'000},
              .given = kRate | kDuration}});
  pair.b.nic.set_filter(&pair.b.filter);
  pair.b.filter.lose = [&](const Frame&) { return pair.b.filter.seen == 5; };
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  EXPECT_NE(pair.b.nic.filter(), &pair.b.filter);
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 200), CompletionStatus::success);
  EXPECT_EQ(pair.b.filter.lost, 1U);
  EXPECT_EQ(pair.b.filter.seen, pair.topology.switch_at(0).queue(1, 3).frames);
  EXPECT_EQ(pair.b.nic.filter(), &pair.b.filter);
  EXPECT_EQ(pair.topology.totals().lossless_drops, 0U);
  EXPECT_EQ(pair.frames.in_use(), 0U);
}

// The second ends after the first, whose place in the chain it must not forget.
TEST(NicFault, slow_receiver__two_at_one_host_end_in_either_order) {
  for (const std::int64_t second_lasts : {10, 40}) {
    const auto slow = [](Picoseconds at, Picoseconds lasts) {
      return FaultSpec{.kind = FaultKind::slow_receiver,
                       .target = "host1",
                       .at = at,
                       .duration = lasts,
                       .rate = {50'000'000'000},
                       .given = kRate | kDuration};
    };
    Pair pair({slow(microseconds{5}, microseconds{30}), slow(microseconds{10}, microseconds{second_lasts})});
    const auto [qa, qb] = pair.connect();
    pair.faults->start();
    EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 200), CompletionStatus::success);
    EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 200), CompletionStatus::success);
    EXPECT_EQ(pair.faults->pending(), 0U);
    EXPECT_EQ(pair.frames.in_use(), 0U);
  }
}

// Hosts 0 and 1 are the two ports of one NIC, host 2 is another; queue pair 1 is bound to the first port,
// queue pair 2 to the second.
struct TwoPorts {
  explicit TwoPorts(const std::vector<FaultSpec>& plan)
      : topology(engine, frames, star_config(3, 4U << 20U).topology(), Prng(1)),
        a(engine, frames, {.host = 0, .rate = {100'000'000'000}, .more_hosts = {1}}),
        b(engine, frames, {}, 2),
        cq(*a.create_cq(64, nullptr).value()) {
    topology.connect_host(0, a.port(0));
    topology.connect_host(1, a.port(1));
    topology.connect_host(2, b.nic.port());
    faults.emplace(engine, frames, topology, std::vector<Nic*>{&a, &a, &b.nic}, plan, Prng(7));
    for (std::uint8_t port = 0; port < 2; ++port) connect(port);
    faults->start();
  }
  void connect(std::uint8_t port) {
    RcQueuePair& qa = *a.create_qp({.send_cq = &cq, .receive_cq = &cq, .send = {16, 1, 0}}).value();
    RcQueuePair& qb = b.make_qp();
    const RcPath there{.peer_host = 2, .peer_qp = qb.number(), .traffic_class = 104};
    const RcPath back{.peer_host = port, .peer_qp = qa.number(), .traffic_class = 104};
    EXPECT_TRUE(qa.modify({.state = QpState::init, .port = static_cast<std::uint8_t>(port + 1)},
                          QpAttr::state | QpAttr::pkey_index | QpAttr::port | QpAttr::access_flags) &&
                qa.to_ready_to_receive(there) && qa.to_ready_to_send());
    World::bring_up(qb, back);
    qps[port] = &qa;
  }
  // An empty WRITE over each, five times; how they ended.
  std::vector<CompletionStatus> write() {
    for (int i = 0; i < 5; ++i) {
      for (RcQueuePair* qp : qps) {
        const SendRequest request{.id = qp->number(), .opcode = RequestOpcode::write};
        EXPECT_EQ(qp->post_send({&request, 1}), 1U);
        a.ring(*qp);
      }
    }
    EXPECT_TRUE(engine.run(std::chrono::seconds{10}));
    std::vector<CompletionStatus> of_port(2, CompletionStatus::success);
    for (const WorkCompletion& one : Side::drain(cq)) {
      if (one.status != CompletionStatus::success) of_port[one.id - kFirstQp] = one.status;
    }
    return of_port;
  }
  FaultRecord record() { return faults->records()[0]; }

  Engine engine{EngineKind::fast};
  FramePool frames;
  Topology topology;
  Nic a;
  Side b;
  CompletionQueue& cq;
  std::array<RcQueuePair*, 2> qps{};
  std::optional<FaultInjector> faults;
};

TEST(TwoPortFault, qp_error__fails_the_queue_pair_whichever_port_it_is_bound_to) {
  for (const std::string target : {"host0:qp2", "host1:qp2"}) {
    TwoPorts world({{.kind = FaultKind::qp_error, .target = target}});
    EXPECT_EQ(world.qps[0]->state(), QpState::ready_to_send);
    EXPECT_EQ(world.qps[1]->state(), QpState::error);
    EXPECT_EQ(world.write(), (std::vector{CompletionStatus::success, CompletionStatus::flushed})) << target;
    EXPECT_EQ(world.record().hits, 1U);
  }
}

TEST(TwoPortFault, drop__hits_the_packet_only_at_the_port_that_it_crosses) {
  for (const auto& [target, hits] : {std::pair{"host0:qp1", 1U}, {"host1:qp1", 0U}, {"host1:qp2", 1U}}) {
    TwoPorts world({{.kind = FaultKind::drop, .target = target, .psn = 2, .given = kPsn}});
    EXPECT_EQ(world.write(), (std::vector(2, CompletionStatus::success)));
    EXPECT_EQ(world.record().hits, hits) << target;
    EXPECT_EQ(world.a.counters().packets_retransmitted > 0, hits == 1) << target;
    EXPECT_EQ(world.frames.in_use(), 0U);
  }
}

TEST(TwoPortFault, pause_storm__pauses_the_switch_at_the_port_that_it_names) {
  for (const std::uint16_t host : {std::uint16_t{0}, std::uint16_t{1}}) {
    TwoPorts world({{.kind = FaultKind::pause_storm, .target = "host" + std::to_string(host)}});
    world.engine.run(microseconds{10});
    EXPECT_TRUE(world.topology.switch_at(0).port(host).paused(3));
    EXPECT_FALSE(world.topology.switch_at(0).port(static_cast<std::uint16_t>(1 - host)).paused(3));
  }
}

TEST(NicFault, pause_storm__holds_the_switch_port_for_its_duration) {
  Pair pair({{.kind = FaultKind::pause_storm,
              .target = "host1",
              .at = microseconds{1},
              .duration = milliseconds{3},
              .given = kDuration}});
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  pair.engine.run(milliseconds{2});
  EXPECT_TRUE(pair.topology.switch_at(0).port(1).paused(3));
  EXPECT_EQ(pair.faults->pending(), 1U);
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 8), CompletionStatus::success);
  EXPECT_GT(pair.b.nic.last_arrival(), milliseconds{3});
  EXPECT_EQ(pair.faults->pending(), 0U);
  // 335.5 us a pause at 100 Gb/s, refreshed at half of it, and the XON.
  EXPECT_EQ(pair.record().hits, 1 + 3000 / 168 + 1U);
}

TEST(NicFault, wrong_class__frames_travel_in_another_priority) {
  Pair pair({{.kind = FaultKind::wrong_class, .target = "host0", .priority = 1, .given = kPriority}});
  const auto [qa, qb] = pair.connect();
  pair.faults->start();
  EXPECT_EQ(pair.transfer(*qa, RequestOpcode::write, 8), CompletionStatus::success);
  EXPECT_GE(pair.topology.switch_at(0).queue(1, 1).frames, 8U);
  EXPECT_EQ(pair.topology.switch_at(0).queue(1, 3).frames, 0U);
}

// --- Wires, with hosts that only send.

struct Wires : Net {
  explicit Wires(std::vector<FaultSpec> plan, std::uint64_t seed = 7)
      : Net(EngineKind::fast, star_config(3, 4U << 20U).topology()),
        faults(engine, pool, topology, std::vector<Nic*>(3), plan, Prng(seed)) {
    faults.start();
  }
  FaultInjector faults;
};

FaultSpec random(FaultKind kind, double probability, FaultDirection direction = FaultDirection::sent) {
  return {.kind = kind,
          .target = "host0",
          .direction = direction,
          .probability = probability,
          .given = kProbability | kDirection};
}

TEST(WireFault, loss__as_many_as_the_probability_says_and_the_same_by_seed) {
  constexpr std::uint64_t kFrames = 100'000;
  constexpr double kProbabilityOfLoss = 0.01;
  std::vector<std::uint64_t> lost;
  for (const std::uint64_t seed : {7U, 7U, 8U}) {
    Wires net({random(FaultKind::loss, kProbabilityOfLoss)}, seed);
    net.hosts[0].send({.dst = 1, .frames = kFrames, .payload_bytes = 256});
    net.hosts[2].send({.dst = 1, .frames = 100, .payload_bytes = 256});
    net.engine.run(testing::kForever);
    lost.push_back(net.faults.records()[0].hits);
    EXPECT_EQ(net.hosts[1].arrivals().size(), kFrames + 100 - lost.back());
  }
  EXPECT_EQ(lost[0], lost[1]);
  EXPECT_NE(lost[0], lost[2]);
  const double mean = kFrames * kProbabilityOfLoss;
  EXPECT_NEAR(static_cast<double>(lost[0]), mean, 4 * std::sqrt(mean * (1 - kProbabilityOfLoss)));
}

TEST(WireFault, direction__received_leaves_alone_what_the_host_sends) {
  Wires net({random(FaultKind::loss, 1, FaultDirection::received)});
  net.hosts[0].send({.dst = 1, .frames = 10});
  net.hosts[1].send({.dst = 0, .frames = 10});
  net.engine.run(testing::kForever);
  EXPECT_EQ(net.hosts[1].arrivals().size(), 10U);
  EXPECT_EQ(net.hosts[0].arrivals().size(), 0U);
}

TEST(WireFault, ecn_mark__marks_what_can_be_marked) {
  Wires net({random(FaultKind::ecn_mark, 1)});
  net.hosts[0].send({.dst = 1, .frames = 3, .ecn = Ecn::capable});
  net.hosts[0].send({.dst = 2, .frames = 3});
  net.engine.run(testing::kForever);
  for (const auto& arrival : net.hosts[1].arrivals()) EXPECT_EQ(arrival.ecn, Ecn::congestion_experienced);
  for (const auto& arrival : net.hosts[2].arrivals()) EXPECT_EQ(arrival.ecn, Ecn::not_capable);
  EXPECT_EQ(net.faults.records()[0].hits, 3U);
}

TEST(WireFault, delay__shifts_by_the_delay_exactly) {
  FaultSpec fault = random(FaultKind::delay, 1);
  fault.delay = microseconds{10};
  fault.given |= kDelay;
  Wires late({fault});
  late.hosts[0].send({.dst = 1, .frames = 5});
  late.engine.run(testing::kForever);
  const Picoseconds t = testing::serialisation(kMtu + kRoceOverheadBytes, testing::gbps(100));
  ASSERT_EQ(late.hosts[1].arrivals().size(), 5U);
  EXPECT_EQ(late.hosts[1].arrivals()[0].time, 2 * t + microseconds{12});
  EXPECT_EQ(late.hosts[1].arrivals()[4].time, 6 * t + microseconds{12});
}

TEST(WireFault, black_hole__swallows_what_is_for_the_host_and_gives_the_buffer_back) {
  Wires net(
      {{.kind = FaultKind::black_hole, .target = "host0", .duration = milliseconds{1}, .given = kDuration}});
  net.hosts[1].send({.dst = 0, .frames = 50});
  net.hosts[0].send({.dst = 1, .frames = 50});
  net.engine.run(milliseconds{2});
  EXPECT_EQ(net.hosts[0].arrivals().size(), 0U);
  EXPECT_EQ(net.hosts[1].arrivals().size(), 50U);
  EXPECT_EQ(net.topology.switch_at(0).buffer().used_bytes(), 0U);
  EXPECT_EQ(net.topology.totals().link_losses, 0U);
  net.hosts[1].send({.dst = 0, .frames = 5});
  net.engine.run(testing::kForever);
  EXPECT_EQ(net.hosts[0].arrivals().size(), 5U);
  EXPECT_EQ(net.faults.records()[0].hits, 50U);
}

TEST(WireFault, link_flap__cuts_as_often_as_it_says) {
  Wires net({{.kind = FaultKind::link_flap,
              .target = "host0",
              .at = microseconds{10},
              .duration = microseconds{10},
              .period = microseconds{100},
              .count = 3,
              .given = kDuration | kPeriod | kCount}});
  std::vector<int> down_at;
  for (int us = 5; us < 400; us += 10) {
    net.engine.run(microseconds{us});
    if (net.hosts[0].port().link_state() == LinkState::down) down_at.push_back(us);
  }
  EXPECT_EQ(down_at, (std::vector<int>{15, 115, 215}));
  EXPECT_EQ(net.faults.records()[0].hits, 3U);
  EXPECT_TRUE(net.faults.records()[0].ended);
  EXPECT_EQ(net.faults.pending(), 0U);
}

// 2:1 into a buffer that must pause, while something keeps the pauses from a sender.
SwitchTotals totals_of_incast(const std::vector<FaultSpec>& plan) {
  Net net(EngineKind::fast, star_config(3, 400'000).topology());
  FaultInjector faults(net.engine, net.pool, net.topology, std::vector<Nic*>(3), plan, Prng(1));
  faults.start();
  for (std::size_t sender = 0; sender < 2; ++sender) net.hosts[sender].send({.dst = 2, .frames = 3000});
  net.engine.run(testing::kForever);
  EXPECT_EQ(net.pool.in_use(), 0U);
  return net.topology.totals();
}

TEST(LosslessDrops, a_flap_during_xoff__counts_as_link_losses) {
  // Many flaps, so that some find the port in XOFF.
  FaultSpec flap{.kind = FaultKind::link_flap,
                 .target = "host0",
                 .at = microseconds{100},
                 .duration = microseconds{1},
                 .period = nanoseconds{7300},
                 .count = 100,
                 .given = kDuration | kPeriod | kCount};
  for (const FaultDirection direction :
       {FaultDirection::both, FaultDirection::sent, FaultDirection::received}) {
    flap.direction = direction;
    const SwitchTotals totals = totals_of_incast({flap});
    EXPECT_EQ(totals.lossless_drops, 0U) << static_cast<int>(direction);
    EXPECT_GT(totals.link_losses, 0U);
  }
  EXPECT_EQ(totals_of_incast({}).link_losses, 0U);
}

TEST(LosslessDrops, lost_pauses__count_as_link_losses) {
  const SwitchTotals totals = totals_of_incast(
      {{.kind = FaultKind::pause_loss, .target = "host0", .duration = milliseconds{1}, .given = kDuration}});
  EXPECT_EQ(totals.lossless_drops, 0U);
  EXPECT_GT(totals.link_losses, 0U);
}

// --- Hosts.

struct Listener final : HostFaultListener {
  void on_host_fault(std::uint16_t host, FaultKind kind, bool begins) override {
    told.emplace_back(host, kind, begins);
  }
  std::vector<std::tuple<std::uint16_t, FaultKind, bool>> told;
};

TEST(HostFault, host_crash__is_silent_both_ways_and_tells_its_listener) {
  Wires net({{.kind = FaultKind::host_crash,
              .target = "host0",
              .at = microseconds{1},
              .duration = microseconds{50},
              .given = kDuration},
             {.kind = FaultKind::process_kill, .target = "host1", .at = microseconds{9}}});
  Listener listener;
  net.faults.set_listener(&listener);
  net.hosts[0].send({.dst = 1, .frames = 5});
  net.hosts[1].send({.dst = 0, .frames = 5});
  net.engine.run(testing::kForever);
  // Three frames of host0 have begun to leave before 1 us; the first for it would arrive later.
  EXPECT_EQ(net.hosts[0].arrivals().size(), 0U);
  EXPECT_EQ(net.hosts[1].arrivals().size(), 3U);
  ASSERT_EQ(listener.told.size(), 3U);
  EXPECT_EQ(listener.told[0], std::tuple(0, FaultKind::host_crash, true));
  EXPECT_EQ(listener.told[1], std::tuple(1, FaultKind::process_kill, true));
  EXPECT_EQ(listener.told[2], std::tuple(0, FaultKind::host_crash, false));
}

}  // namespace
}  // namespace bx::sim
