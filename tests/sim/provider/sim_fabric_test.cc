// SPDX-License-Identifier: GPL-2.0-only
// The simulated fabric beyond the contract of the boundary (which tests/conformance holds it to): its
// configuration, its predictions, what it measures, and an incast against the closed form.
#include "sim/provider/sim_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "sim/provider/sim_device.h"

namespace bx::sim {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<SimFabric> make(const SimConfig& config) {
  auto fabric = SimFabric::create(config);
  EXPECT_TRUE(fabric.has_value()) << (fabric ? "" : fabric.error().detail);
  return std::move(*fabric);
}

// --- Configuration.

TEST(sim_fabric, create__refuses_what_cannot_work_and_names_it) {
  struct Case {
    const char* named;
    std::function<void(SimConfig&)> spoil;
  };
  const std::vector<Case> cases{
      {"hosts", [](SimConfig& c) { c.hosts = 0; }},
      {"hosts", [](SimConfig& c) { c.hosts = 5000; }},
      {"rate", [](SimConfig& c) { c.rate_bps = 0; }},
      {"rate", [](SimConfig& c) { c.rate_bps = UINT64_MAX; }},
      {"delay", [](SimConfig& c) { c.delay_ns = UINT64_MAX; }},
      {"mtu", [](SimConfig& c) { c.mtu = 1500; }},
      {"mtu", [](SimConfig& c) { c.mtu = 0; }},
      {"pfc.quanta", [](SimConfig& c) { c.pfc.quanta = 0; }},
      {"pfc.headroom", [](SimConfig& c) { c.pfc.headroom_bytes = 1000; }},
      {"pfc.headroom", [](SimConfig& c) { c.pfc.headroom_bytes = UINT64_MAX; }},
      {"alpha", [](SimConfig& c) { c.buffer.alpha_log2 = 11; }},
      {"ecn.kmin", [](SimConfig& c) { c.ecn.kmin_bytes = c.ecn.kmax_bytes; }},
      {"ecn.pmax", [](SimConfig& c) { c.ecn.pmax = 1.5; }},
      {"ecn.mark_at", [](SimConfig& c) { c.ecn.mark_at = "never"; }},
      {"latencies", [](SimConfig& c) { c.nic_rx_latency_ns = UINT64_MAX; }},
      {"message_bytes_max", [](SimConfig& c) { c.message_bytes_max = 0; }},
      {"congestion_control.algorithm", [](SimConfig& c) { c.congestion.algorithm = "bbr"; }},
      {"ecn.enabled",
       [](SimConfig& c) {
         c.congestion.algorithm = "dcqcn";
         c.ecn.enabled = false;
       }},
      {"congestion_control.profile", [](SimConfig& c) { c.congestion.profile = "zhu16"; }},
      {"congestion_control.cnp_scope", [](SimConfig& c) { c.congestion.cnp_scope = "host"; }},
      {"congestion_control.cnp_with_naks", [](SimConfig& c) { c.congestion.cnp_with_naks = "yes"; }},
      {"congestion_control.cnp_dscp", [](SimConfig& c) { c.congestion.cnp_dscp = 64; }},
      {"congestion_control.dcqcn", [](SimConfig& c) { c.congestion.dcqcn.g = 2; }},
      {"dcqcn.alpha_update", [](SimConfig& c) { c.congestion.dcqcn.alpha_update = "never"; }},
      {"dcqcn.clamp_target", [](SimConfig& c) { c.congestion.dcqcn.clamp_target = "yes"; }},
      {"dcqcn.rate_min",
       [](SimConfig& c) {
         c.congestion.algorithm = "dcqcn";
         c.congestion.dcqcn.rate_min_bps = 2 * c.rate_bps;
       }},
      {"swift.base_target", [](SimConfig& c) { c.congestion.swift.base_target_ns = 0; }},
      {"congestion_control.swift", [](SimConfig& c) { c.congestion.swift.beta = 0; }},
      {"window_min", [](SimConfig& c) { c.congestion.swift.window_min = 0; }},
      {"", [](SimConfig& c) { c.buffer.bytes = 1000; }},
  };
  for (const Case& c : cases) {
    SimConfig config;
    c.spoil(config);
    const auto fabric = SimFabric::create(config);
    ASSERT_FALSE(fabric.has_value()) << c.named;
    EXPECT_THAT(fabric.error().detail, testing::HasSubstr(c.named));
  }
}

TEST(sim_fabric, create__accepts_exactly_the_headroom_that_is_needed) {
  SimConfig config;
  const std::uint64_t needed = SimFabric::headroom_needed_bytes(config);
  config.pfc.headroom_bytes = needed;
  EXPECT_TRUE(SimFabric::create(config).has_value());
  config.pfc.headroom_bytes = needed - 1;
  EXPECT_FALSE(SimFabric::create(config).has_value());
  config.pfc.enabled = false;  // no PFC, no headroom to be short of
  EXPECT_TRUE(SimFabric::create(config).has_value());
}

TEST(sim_fabric, headroom_needed__grows_with_rate_delay_and_mtu) {
  const SimConfig base;
  const std::uint64_t needed = SimFabric::headroom_needed_bytes(base);
  SimConfig faster = base;
  faster.rate_bps *= 4;
  SimConfig farther = base;
  farther.delay_ns *= 2;
  SimConfig smaller = base;
  smaller.mtu = 1024;
  EXPECT_GT(SimFabric::headroom_needed_bytes(faster), needed);
  // 1 us more each way at 100 Gb/s: 25 000 bytes.
  EXPECT_EQ(SimFabric::headroom_needed_bytes(farther), needed + 25'000);
  EXPECT_LT(SimFabric::headroom_needed_bytes(smaller), needed);
}

TEST(sim_fabric, xoff_onset__shrinks_with_the_number_of_senders) {
  const SimConfig config{.hosts = 65};
  EXPECT_GT(SimFabric::xoff_onset_bytes(config, 1), SimFabric::xoff_onset_bytes(config, 16));
  EXPECT_GT(SimFabric::xoff_onset_bytes(config, 16), SimFabric::xoff_onset_bytes(config, 64));
  SimConfig off = config;
  off.pfc.enabled = false;
  EXPECT_EQ(SimFabric::xoff_onset_bytes(off, 16), 0U);
}

TEST(sim_fabric, open_host__knows_its_hosts_by_one_spelling) {
  const auto fabric = make({.hosts = 12});
  for (const char* name : {"host0", "host9", "host11"})
    EXPECT_TRUE(fabric->open_host(name).has_value()) << name;
  for (const char* name :
       {"host12", "host00", "host01", "host", "host-1", "host1 ", "Host1", "", "host99999999999", "host+1"}) {
    const auto host = fabric->open_host(name);
    ASSERT_FALSE(host.has_value()) << name;
    EXPECT_EQ(host.error().code, ErrorCode::unreachable);
  }
}

TEST(sim_fabric, open_host__again_after_closing_is_a_restart_with_other_random_numbers) {
  const auto fabric = make({});
  auto first = fabric->open_host("host0");
  const std::uint64_t drawn = (*first)->prng().next();
  EXPECT_EQ(fabric->open_host("host0").error().code, ErrorCode::exhausted);
  first->reset();
  auto second = fabric->open_host("host0");
  ASSERT_TRUE(second.has_value());
  EXPECT_NE((*second)->prng().next(), drawn);
}

// --- An incast through the boundary, without the library.

constexpr std::uint32_t kLength = 1U << 20U;

// One host's objects: enough to WRITE to another host, or to be written to.
struct Node {
  Node(SimFabric& fabric, std::uint32_t index)
      : host(std::move(*fabric.open_host("host" + std::to_string(index)))),
        memory(kLength),
        mr(std::move(*host->device().register_memory(memory, fabric::Access::remote_write))),
        cq(std::move(*host->device().create_cq({.depth = 1024}))),
        srq(std::move(*host->device().create_srq({.depth = 1}))) {}
  std::unique_ptr<fabric::QueuePair> make_qp() {
    return std::move(*host->device().create_qp(
        {.send_cq = cq.get(), .recv_cq = cq.get(), .srq = srq.get(), .send_depth = 4}));
  }
  std::unique_ptr<fabric::Host> host;
  std::vector<std::byte> memory;
  std::unique_ptr<fabric::MemoryRegion> mr;
  std::unique_ptr<fabric::CompletionQueue> cq;
  std::unique_ptr<fabric::SharedReceiveQueue> srq;
};

struct Metrics final : MetricSink {
  void metric(std::string_view name, double value, std::string_view /*unit*/) override {
    EXPECT_TRUE(values.emplace(name, value).second) << name << " is reported twice";
  }
  std::map<std::string, double, std::less<>> values;
};

struct IncastResult {
  Instant last{};
  std::uint64_t digest = 0;
  Metrics metrics;
  Audit audit;
  std::uint64_t events = 0;
  std::uint64_t sampled_bytes_max = 0;
};

// `senders` hosts WRITE 1 MiB each to host 0 at once.
IncastResult run_incast(SimConfig config, std::uint32_t senders,
                        fabric::PathConfig path = {.traffic_class = 3U << 5U}) {
  config.hosts = senders + 1;
  path.mtu_bytes = config.mtu;
  const auto fabric = make(config);
  IncastResult result;
  {
    std::vector<std::unique_ptr<Node>> nodes;
    for (std::uint32_t i = 0; i <= senders; ++i) nodes.push_back(std::make_unique<Node>(*fabric, i));
    std::vector<std::unique_ptr<fabric::QueuePair>> qps;
    for (std::uint32_t i = 1; i <= senders; ++i) {
      auto mine = nodes[i]->make_qp();
      auto peer = nodes[0]->make_qp();
      EXPECT_TRUE(mine->connect(peer->address(), path) && peer->connect(mine->address(), path));
      const fabric::Sge from{reinterpret_cast<std::uintptr_t>(nodes[i]->memory.data()), kLength,
                             nodes[i]->mr->lkey()};
      const fabric::SendWr write{
          .sges = {&from, 1},
          .remote = {reinterpret_cast<std::uintptr_t>(nodes[0]->memory.data()), nodes[0]->mr->rkey()},
          .opcode = fabric::Opcode::rdma_write};
      EXPECT_EQ(mine->post_send({&write, 1}), 1U);
      qps.push_back(std::move(mine));
      qps.push_back(std::move(peer));
    }
    fabric::Reactor& reactor = nodes[0]->host->reactor();
    std::uint32_t done = 0;
    for (int step = 0; step < 200'000 && done < senders; ++step) {
      reactor.run(fabric->now() + 1us);
      fabric::Completion completion;
      for (std::uint32_t i = 1; i <= senders; ++i) {
        while (nodes[i]->cq->poll({&completion, 1}) == 1) {
          EXPECT_EQ(completion.status, fabric::WcStatus::success);
          ++done;
        }
      }
      result.sampled_bytes_max = std::max(result.sampled_bytes_max, fabric->sample().switch_bytes);
    }
    EXPECT_EQ(done, senders);
    result.last = fabric->now();
    EXPECT_EQ(reactor.run(kNever), fabric::RunEnd::idle);
    result.audit = fabric->audit();
    fabric->report(result.metrics);
    result.digest = fabric->digest();
    result.events = fabric->events();
  }
  return result;
}

TEST(sim_fabric, incast__ends_at_the_line_rate_bound) {
  for (const auto& [senders, mtu] : {std::pair{16U, 4096U}, {16U, 1024U}, {64U, 4096U}}) {
    const IncastResult result = run_incast({.mtu = mtu, .ecn = {.enabled = false}}, senders);
    // Store and forward: everything crosses the receiver's link once, the first packet another link before
    // it, the last ACK two links after it; a WRITE's RETH is in the first packet of each message.
    const std::int64_t packets = kLength / mtu;
    const std::int64_t per_byte_ps = 80;
    const std::int64_t bulk = senders * (packets * (mtu + 82) + 16) * per_byte_ps;
    const std::int64_t first = (mtu + 82 + 16) * per_byte_ps;
    const std::int64_t ack = 2 * 86 * per_byte_ps;
    const std::int64_t fixed_ps = 4 * 1'000'000 + 2 * 300'000;
    const Duration bound{(bulk + first + ack + fixed_ps) / 1000};
    EXPECT_GE(result.last.time_since_epoch(), bound);
    EXPECT_LE(result.last.time_since_epoch(), bound + 2us) << "the test polls every microsecond";
    EXPECT_TRUE(result.audit.breaches.empty()) << result.audit.breaches[0];
    EXPECT_EQ(result.audit.payload_bytes_sent, std::uint64_t{senders} * kLength);
    EXPECT_EQ(result.audit.payload_bytes_delivered, std::uint64_t{senders} * kLength);
    EXPECT_EQ(result.metrics.values.at("nic.retransmissions"), 0);
    // 16 MiB fit under the thresholds of a 32 MiB buffer, 64 MiB do not.
    EXPECT_EQ(result.metrics.values.at("pfc.pause_frames") > 0, senders == 64);
    EXPECT_EQ(result.metrics.values.at("pfc.paused_time") > 0, senders == 64);
    EXPECT_GT(result.metrics.values.at("link.utilisation_max"), 0.98);
    EXPECT_LE(result.metrics.values.at("link.utilisation_max"), 1);
    EXPECT_LE(result.sampled_bytes_max, result.metrics.values.at("switch.buffer_bytes_max"));
    EXPECT_GT(result.sampled_bytes_max, 1'000'000U);
  }
}

// Over every shape: nothing lost, everything conserved, and never faster than the receiver's link.
TEST(sim_fabric, incast__over_every_topology_delivers_all) {
  for (const char* shape : {"dumbbell", "leaf-spine", "fat-tree", "three-tier", "rail"}) {
    SimConfig config{.buffer = {.bytes = 8U << 20U}, .topology = {.shape = shape, .rails = 4}};
    config.topology.uplink_rate_bps = 200'000'000'000;
    const IncastResult result = run_incast(config, 15);
    EXPECT_GE(result.last.time_since_epoch(), Duration{15LL * 256 * 4178 * 8 / 100}) << shape;
    EXPECT_TRUE(result.audit.breaches.empty()) << shape << result.audit.breaches[0];
    EXPECT_EQ(result.audit.payload_bytes_delivered, 15U * kLength) << shape;
    EXPECT_GT(result.metrics.values.at("pfc.pause_frames"), 0) << shape;
  }
}

TEST(sim_fabric, capture__writes_what_a_port_sees_and_refuses_ports_that_are_not) {
  const std::string path = ::testing::TempDir() + "incast.pcapng";
  const auto fabric = make({.hosts = 2});
  const std::vector<std::string> ports{"host1", "switch0:0"};
  EXPECT_FALSE(fabric->start_capture(path, std::vector<std::string>{"host2"}).has_value());
  EXPECT_FALSE(fabric->start_capture(path, std::vector<std::string>{"host1", "host1"}).has_value());
  EXPECT_FALSE(fabric->start_capture("/no/such/folder", ports).has_value());
  ASSERT_TRUE(fabric->start_capture(path, ports).has_value());
  EXPECT_FALSE(fabric->start_capture(path, ports).has_value());
  {
    Node a(*fabric, 0);
    Node b(*fabric, 1);
    auto qp = a.make_qp();
    auto peer = b.make_qp();
    ASSERT_TRUE(qp->connect(peer->address(), {}) && peer->connect(qp->address(), {}));
    const fabric::Sge from{reinterpret_cast<std::uintptr_t>(a.memory.data()), 64, a.mr->lkey()};
    const fabric::SendWr write{.sges = {&from, 1},
                               .remote = {reinterpret_cast<std::uintptr_t>(b.memory.data()), b.mr->rkey()},
                               .opcode = fabric::Opcode::rdma_write};
    ASSERT_EQ(qp->post_send({&write, 1}), 1U);
    EXPECT_EQ(a.host->reactor().run(kNever), fabric::RunEnd::idle);
    fabric::Completion completion;
    EXPECT_EQ(a.cq->poll({&completion, 1}), 1U);
  }
  ASSERT_TRUE(fabric->end_capture().has_value());
  // Section, two interfaces, and at each a WRITE of 64 bytes (138, padded 140) and its acknowledgement (62,
  // 64).
  EXPECT_EQ(std::filesystem::file_size(path), 64U + 56 + 60 + 2 * (44 + 140 + 44 + 64));
  EXPECT_TRUE(fabric->end_capture().has_value());
}

TEST(sim_fabric, incast__in_a_lossy_class_drops_and_recovers) {
  SimConfig config;
  config.buffer.bytes = 2U << 20U;
  const IncastResult result = run_incast(config, 8, {.ack_timeout = 8, .traffic_class = 0});
  EXPECT_GT(result.metrics.values.at("switch.drops"), 0);
  EXPECT_GT(result.metrics.values.at("nic.retransmissions"), 0);
  EXPECT_EQ(result.metrics.values.at("pfc.pause_frames"), 0);
  EXPECT_TRUE(result.audit.breaches.empty()) << result.audit.breaches[0];
}

TEST(sim_fabric, digest__is_the_same_for_the_same_seed_and_on_both_engines) {
  const SimConfig config{.seed = 5};
  const IncastResult once = run_incast(config, 8);
  const IncastResult again = run_incast(config, 8);
  SimConfig stock = config;
  stock.engine = EngineKind::stock;
  const IncastResult other_engine = run_incast(stock, 8);
  SimConfig seeded = config;
  seeded.seed = 6;
  EXPECT_EQ(once.digest, again.digest);
  EXPECT_EQ(once.events, again.events);
  EXPECT_EQ(once.digest, other_engine.digest);
  EXPECT_NE(once.digest, run_incast(seeded, 8).digest) << "first PSNs come from the seed";
}

TEST(sim_fabric, loss_recovery__by_name_and_window) {
  const IncastResult whole = run_incast({}, 2);
  const IncastResult narrow = run_incast({.loss_recovery = "selective-repeat", .recovery_window = 1}, 2);
  EXPECT_NE(whole.digest, narrow.digest) << "a window of one packet is another run";
  const auto refused = SimFabric::create({.loss_recovery = "sometimes"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("go-back-n or selective-repeat"));
  EXPECT_FALSE(SimFabric::create({.loss_recovery = "selective-repeat", .recovery_window = 0}).has_value());
}

TEST(sim_fabric, report__has_every_metric_that_is_promised) {
  const IncastResult result = run_incast({}, 2);
  for (const char* name :
       {"pfc.pause_frames", "pfc.resume_frames", "pfc.paused_time", "switch.buffer_bytes_max",
        "switch.queue_bytes_max", "switch.drops", "switch.lossless_drops", "ecn.marks", "nic.packets_tx",
        "nic.packets_rx", "nic.retransmissions", "nic.timeouts", "nic.rnr_naks", "nic.sequence_naks",
        "link.utilisation_max", "sim.events"}) {
    EXPECT_TRUE(result.metrics.values.contains(name)) << name;
  }
}

TEST(sim_fabric, audit__names_what_is_unfinished) {
  const auto fabric = make({.hosts = 2});
  Node a(*fabric, 0);
  Node b(*fabric, 1);
  const auto mine = a.make_qp();
  const auto peer = b.make_qp();
  ASSERT_TRUE(mine->connect(peer->address(), {}) && peer->connect(mine->address(), {}));
  const fabric::SendWr send{};  // no receive is posted: RNR for ever
  mine->post_send({&send, 1});
  a.host->reactor().run(fabric->now() + 10us);
  const Audit audit = fabric->audit();
  ASSERT_FALSE(audit.breaches.empty());
  EXPECT_THAT(audit.breaches[0], testing::HasSubstr("host0: unfinished work: 1 send requests"));
}

TEST(sim_fabric, events__of_port_and_device_reach_the_user_of_the_device) {
  const auto fabric = make({.hosts = 2});
  Node a(*fabric, 0);
  Node b(*fabric, 1);
  const auto mine = a.make_qp();
  const auto peer = b.make_qp();
  ASSERT_TRUE(mine->connect(peer->address(), {}) && peer->connect(mine->address(), {}));
  Nic& nic = static_cast<SimDevice&>(a.host->device()).nic();
  nic.port().set_link(LinkState::down);
  nic.port().set_link(LinkState::up);
  nic.reset_device();
  a.host->reactor().run(fabric->now() + 1us);
  std::array<fabric::DeviceEvent, 8> events;
  const std::size_t count = a.host->device().poll_events(events);
  std::vector<fabric::DeviceEventKind> kinds;
  for (std::size_t i = 0; i < count; ++i) kinds.push_back(events[i].kind);
  using Kind = fabric::DeviceEventKind;
  EXPECT_THAT(kinds, testing::ElementsAre(Kind::port_error, Kind::port_active, Kind::device_fatal))
      << "what a shared receive queue is told has no place at the boundary";
  const fabric::SendWr send{.wr_id = fabric::WrId{5}};
  ASSERT_EQ(mine->post_send({&send, 1}), 1U);
  a.host->reactor().run(fabric->now() + 1us);
  fabric::Completion completion;
  ASSERT_EQ(a.cq->poll({&completion, 1}), 1U);
  EXPECT_EQ(completion.status, fabric::WcStatus::flushed);
}

TEST(sim_fabric, connect__to_an_address_where_nobody_is_ends_in_retry_exceeded) {
  const auto fabric = make({.hosts = 2});
  Node a(*fabric, 0);
  const auto qp = a.make_qp();
  ASSERT_TRUE(qp->connect({.gid = {1, 2, 3}, .qp = fabric::QpNum{9}}, {.ack_timeout = 8, .retry_cnt = 1}));
  const fabric::SendWr send{};
  qp->post_send({&send, 1});
  a.host->reactor().run(kNever);
  fabric::Completion completion;
  ASSERT_EQ(a.cq->poll({&completion, 1}), 1U);
  EXPECT_EQ(completion.status, fabric::WcStatus::retry_exceeded);
}

TEST(sim_fabric, connect__above_the_networks_mtu_is_refused) {
  const auto fabric = make({.hosts = 1, .mtu = 1024});
  Node a(*fabric, 0);
  const auto qp = a.make_qp();
  EXPECT_EQ(a.host->device().caps().mtu_max, 1024U);
  EXPECT_FALSE(qp->connect(qp->address(), {.mtu_bytes = 2048}).has_value());
  EXPECT_TRUE(qp->connect(qp->address(), {.mtu_bytes = 1024}).has_value());
}

// --- A turn's posts reach the NIC when the turn has been paid for.

struct PostingTurn final : fabric::Turn {
  explicit PostingTurn(fabric::QueuePair& queue_pair) : qp(queue_pair) {}
  fabric::TurnResult turn(Instant now) noexcept override {
    if (posted_at != Instant{}) return {};
    posted_at = now;
    const fabric::SendWr write{.opcode = fabric::Opcode::rdma_write};
    qp.post_send({&write, 1});
    return {.work = {.bytes_copied = 1'000'000}};  // 80 us at 80 ps a byte
  }
  fabric::QueuePair& qp;
  Instant posted_at{};
};

TEST(sim_fabric, post__inside_a_turn_reaches_the_wire_when_the_turns_work_is_done) {
  const auto fabric = make({.hosts = 2});
  Node a(*fabric, 0);
  Node b(*fabric, 1);
  const auto mine = a.make_qp();
  const auto peer = b.make_qp();
  ASSERT_TRUE(mine->connect(peer->address(), {}) && peer->connect(mine->address(), {}));
  a.host->reactor().run(fabric->now() + 10us);
  PostingTurn turn(*mine);
  a.host->reactor().attach(&turn);
  a.host->reactor().run(fabric->now() + 70us);
  Metrics before;
  fabric->report(before);
  EXPECT_EQ(before.values.at("nic.packets_tx"), 0);
  a.host->reactor().run(fabric->now() + 20us);
  Metrics after;
  fabric->report(after);
  EXPECT_EQ(after.values.at("nic.packets_tx"), 2) << "the WRITE and its ACK";
  EXPECT_GE(a.host->reactor().cpu_time(), 80us);
  a.host->reactor().attach(nullptr);
}

}  // namespace
}  // namespace bx::sim
