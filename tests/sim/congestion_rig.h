// SPDX-License-Identifier: GPL-2.0-only
// Long flows to one receiver over one switch, by real NICs with congestion control: for its validation.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include "sim/model/nic.h"
#include "tests/sim/traffic.h"

namespace bx::sim::testing {

struct LongFlowsConfig {
  std::uint16_t senders = 2;
  std::uint64_t rate_gbps = 100;
  EcnConfig ecn{};
  CongestionConfig congestion{};
};

// A sender with a WRITE without end, as far as anybody can tell: two requests, each posted again when it is
// done.
class LongFlow final : public CompletionListener {
 public:
  LongFlow(Nic& nic, Nic& sink, std::vector<std::byte>& memory) : nic_(nic) {
    cq_ = nic.create_cq(16, this).value();
    qp_ = make(nic, cq_);
    RcQueuePair* peer = make(sink, sink.create_cq(16, nullptr).value());
    connect(*qp_, sink.config().host, peer->number());
    connect(*peer, nic.config().host, qp_->number());
    const auto all = MemoryAccess::local_write | MemoryAccess::remote_write;
    segment_ = {reinterpret_cast<std::uintptr_t>(memory.data()), static_cast<std::uint32_t>(memory.size()),
                nic.memory().add(memory, all).value().lkey};
    rkey_ = sink.memory().add(memory, all).value().rkey;
  }
  void start() {
    running_ = true;
    post();
    post();
    cq_->arm(ArmFor::any);
  }
  void stop() { running_ = false; }  // after the requests under way
  [[nodiscard]] RcQueuePair& qp() { return *qp_; }
  // Sent so far.
  [[nodiscard]] std::uint64_t bytes() const { return nic_.counters().payload_bytes_sent; }

  void on_wake(CompletionQueue& /*cq*/) override {
    std::array<WorkCompletion, 4> done;
    do {
      for (std::size_t n = cq_->poll(done); n > 0 && running_; --n) post();
    } while (!cq_->arm(ArmFor::any));
  }

 private:
  static RcQueuePair* make(Nic& nic, CompletionQueue* cq) {
    return nic.create_qp({.send_cq = cq, .receive_cq = cq, .send = {.depth = 4, .segments_max = 1}}).value();
  }
  static void connect(RcQueuePair& qp, std::uint16_t host, std::uint32_t number) {
    const RcPath path{.peer_host = host,
                      .peer_qp = number,
                      .mtu = 1024,
                      .ack_timeout = 0,
                      .traffic_class = kLossless << 5U};
    BX_CHECK(qp.to_init() && qp.to_ready_to_receive(path) && qp.to_ready_to_send(), "the path is legal");
  }
  void post() {
    const SendRequest request{.segments = {&segment_, 1},
                              .remote_addr = segment_.addr,
                              .rkey = rkey_,
                              .opcode = RequestOpcode::write};
    BX_CHECK(qp_->post_send({&request, 1}).has_value(), "the queue has room");
    nic_.ring(*qp_);
  }

  Nic& nic_;
  CompletionQueue* cq_ = nullptr;
  RcQueuePair* qp_ = nullptr;
  Segment segment_{};
  std::uint32_t rkey_ = 0;
  bool running_ = false;
};

// Hosts 0 .. senders-1 send to the last one.
class LongFlows {
 public:
  explicit LongFlows(const LongFlowsConfig& config)
      : topology_(engine_, pool_, plan(config), Prng(1)), memory_(1U << 20U), sink_(config.senders) {
    for (std::uint16_t i = 0; i <= config.senders; ++i) {
      nics_.push_back(std::make_unique<Nic>(
          engine_, pool_,
          NicConfig{.host = i, .rate = gbps(config.rate_gbps), .congestion = config.congestion}));
      topology_.connect_host(i, nics_.back()->port());
    }
    for (std::uint16_t i = 0; i < config.senders; ++i) flows_.emplace_back(*nics_[i], *nics_[sink_], memory_);
  }

  [[nodiscard]] LongFlow& flow(std::size_t index) { return flows_[index]; }
  void start_all() {
    for (LongFlow& flow : flows_) flow.start();
  }
  // One after the other: what starts at once and is cut at once stays in step for long.
  void start_in_turn(Picoseconds gap) {
    for (LongFlow& flow : flows_) {
      flow.start();
      run(gap);
    }
  }
  void run(Picoseconds time) { engine_.run(engine_.now() + time); }

  struct Measured {
    double queue_bytes = 0;  // mean, sampled every 5 us
    double jain = 0;         // of the bytes that the flows sent
    double utilisation = 0;  // of the bottleneck, payload and headers
  };
  Measured measure(Picoseconds time) {
    std::vector<double> bytes;
    for (const LongFlow& flow : flows_) bytes.push_back(static_cast<double>(flow.bytes()));
    const Port& out = nics_[sink_]->port();
    const std::uint64_t received = out.counters().rx_bytes;
    const Picoseconds start = engine_.now();
    double sum = 0;
    std::uint64_t samples = 0;
    while (engine_.now() < start + time) {
      run(microseconds{5});
      sum += static_cast<double>(topology_.switch_at(0).queue(sink_, kLossless).bytes);
      ++samples;
    }
    Measured measured{.queue_bytes = sum / static_cast<double>(samples)};
    double total = 0;
    double squares = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const double share = static_cast<double>(flows_[i].bytes()) - bytes[i];
      total += share;
      squares += share * share;
    }
    measured.jain = total * total / (static_cast<double>(flows_.size()) * squares);
    measured.utilisation = static_cast<double>(out.counters().rx_bytes - received) * 8e12 /
                           (static_cast<double>(out.rate().bits_per_second) *
                            static_cast<double>((engine_.now() - start).count()));
    return measured;
  }
  [[nodiscard]] Picoseconds now() const { return engine_.now(); }

 private:
  static TopologyConfig plan(const LongFlowsConfig& config) {
    StarConfig star = star_config(static_cast<std::uint16_t>(config.senders + 1), 64U << 20U);
    star.fabric.rate = gbps(config.rate_gbps);
    star.fabric.ecn[kLossless] = config.ecn;
    return star.topology();
  }

  Engine engine_{EngineKind::fast};
  FramePool pool_;
  Topology topology_;
  std::vector<std::byte> memory_;
  std::uint16_t sink_;
  std::vector<std::unique_ptr<Nic>> nics_;
  std::deque<LongFlow> flows_;
};

}  // namespace bx::sim::testing
