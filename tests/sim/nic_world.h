// SPDX-License-Identifier: GPL-2.0-only
// Two NICs on one link, for the tests of the NIC: each with memory, completion queues and a shared receive
// queue, and a filter on its receiving side that can lose chosen frames.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sim/model/engine.h"
#include "sim/model/nic.h"

namespace bx::sim {

struct WorldConfig {
  EngineKind engine = EngineKind::fast;
  std::uint64_t rate_bps = 100'000'000'000;
  Picoseconds delay = microseconds{1};
  Picoseconds fetch_latency = nanoseconds{300};
  Picoseconds write_back_latency = nanoseconds{300};
  std::uint32_t ack_interval = 64;
  RecoveryConfig recovery{};
  std::uint32_t cq_depth = 1024;
  std::uint32_t srq_depth = 256;
  std::uint32_t send_depth = 256;
  std::uint32_t segments_max = 4;
  std::uint32_t inline_max = 256;
  std::size_t memory_bytes = 1U << 20U;
  CongestionConfig congestion{};
  std::array<NicCostConfig, 2> costs{};  // of each side
  std::uint64_t payload_kept = UINT64_MAX;
};

// Loses the frames for which `lose` says so; sees every frame that arrives.
class LossFilter final : public FrameFilter {
 public:
  void filter(Nic& nic, Frame* frame) override {
    ++seen;
    if (lose && lose(*frame)) {
      ++lost;
      nic.frames().free(frame);
      return;
    }
    nic.accept(frame);
  }
  std::function<bool(const Frame&)> lose;
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
};

class Side final : public CompletionListener, public NicListener {
 public:
  Side(Engine& engine, FramePool& frames, const WorldConfig& config, std::uint16_t host)
      : nic(engine, frames,
            {.host = host,
             .rate = {config.rate_bps},
             .fetch_latency = config.fetch_latency,
             .write_back_latency = config.write_back_latency,
             .ack_interval = config.ack_interval,
             .recovery = config.recovery,
             .congestion = config.congestion,
             .costs = config.costs[host % 2],
             .payload_kept = config.payload_kept}),
        memory(config.memory_bytes),
        send_cq(*nic.create_cq(config.cq_depth, this).value()),
        receive_cq(*nic.create_cq(config.cq_depth, this).value()),
        srq(*nic.create_srq(config.srq_depth, config.segments_max).value()),
        keys(nic.memory()
                 .add(memory, MemoryAccess::local_write | MemoryAccess::remote_read |
                                  MemoryAccess::remote_write | MemoryAccess::remote_atomic)
                 .value()),
        config_(config) {
    nic.set_listener(this);
    nic.set_filter(&filter);
  }

  RcQueuePair& make_qp() {
    return *nic.create_qp({.send_cq = &send_cq,
                           .receive_cq = &receive_cq,
                           .srq = &srq,
                           .send = {config_.send_depth, config_.segments_max, config_.inline_max}})
                .value();
  }

  [[nodiscard]] std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  [[nodiscard]] Segment segment(std::size_t offset, std::uint32_t length) const {
    return {at(offset), length, keys.lkey};
  }
  [[nodiscard]] std::span<std::byte> bytes(std::size_t offset, std::size_t length) {
    return std::span(memory).subspan(offset, length);
  }
  // A pattern that differs at every offset and seed.
  void fill(std::size_t offset, std::size_t length, std::uint32_t seed) {
    for (std::size_t i = 0; i < length; ++i) {
      memory[offset + i] = static_cast<std::byte>((i * 2654435761U + seed * 40503U) >> 13U);
    }
  }

  std::size_t post(RcQueuePair& qp, const SendRequest& request) {
    const std::size_t accepted = qp.post_send({&request, 1}).value();
    nic.ring(qp);
    return accepted;
  }
  void receive_into(std::uint64_t id, const std::vector<Segment>& segments) {
    const ReceiveRequest request{id, segments};
    srq.post({&request, 1});
    srq.ring();
  }

  static std::vector<WorkCompletion> drain(CompletionQueue& cq) {
    std::vector<WorkCompletion> all(cq.size());
    all.resize(cq.poll(all));
    return all;
  }
  std::vector<WorkCompletion> sends() { return drain(send_cq); }
  std::vector<WorkCompletion> receives() { return drain(receive_cq); }

  void on_wake(CompletionQueue& cq) override { wakes.push_back(&cq); }
  void on_nic_event(NicEventKind kind, std::uint32_t id) override { events.emplace_back(kind, id); }

  Nic nic;
  std::vector<std::byte> memory;
  CompletionQueue& send_cq;
  CompletionQueue& receive_cq;
  SharedReceiveQueue& srq;
  MemoryKeys keys;
  LossFilter filter;
  std::vector<CompletionQueue*> wakes;
  std::vector<std::pair<NicEventKind, std::uint32_t>> events;

 private:
  WorldConfig config_;
};

class World {
 public:
  explicit World(const WorldConfig& config = {})
      : engine(config.engine), a(engine, frames, config, 0), b(engine, frames, config, 1) {
    Port::connect(a.nic.port(), b.nic.port(), config.delay);
  }

  // Two queue pairs, in RTS, connected to each other; `path` says all but who the peer is.
  std::pair<RcQueuePair*, RcQueuePair*> connect(RcPath path = {}) {
    RcQueuePair& qa = a.make_qp();
    RcQueuePair& qb = b.make_qp();
    const std::uint32_t psn_a = path.send_psn;
    const std::uint32_t psn_b = path.receive_psn;
    path.peer_host = 1;
    path.peer_qp = qb.number();
    bring_up(qa, path);
    path.peer_host = 0;
    path.peer_qp = qa.number();
    path.send_psn = psn_b;
    path.receive_psn = psn_a;
    bring_up(qb, path);
    return {&qa, &qb};
  }
  static void bring_up(RcQueuePair& qp, const RcPath& path) {
    BX_CHECK(qp.to_init() && qp.to_ready_to_receive(path) && qp.to_ready_to_send(), "the path is legal");
  }
  // Posts and rings a WRITE of a's memory to `at` in b's, over a queue pair of a.
  struct Write {
    std::uint64_t id = 0;
    Segment from{};
    std::size_t at = 0;
  };
  std::size_t write(RcQueuePair& qp, const Write& what) {
    return a.post(qp, {.id = what.id,
                       .segments = {&what.from, 1},
                       .remote_addr = b.at(what.at),
                       .rkey = b.keys.rkey,
                       .opcode = RequestOpcode::write});
  }
  // Until nothing is left; false if something still is after `limit`.
  bool run(Picoseconds limit = std::chrono::seconds{100}) { return engine.run(limit); }
  [[nodiscard]] bool at_rest() const {
    return a.nic.audit().at_rest() && b.nic.audit().at_rest() && frames.in_use() == 0;
  }
  [[nodiscard]] bool bytes_conserved() const {
    const NicCounters& ca = a.nic.counters();
    const NicCounters& cb = b.nic.counters();
    return ca.payload_bytes_sent + cb.payload_bytes_sent ==
           ca.payload_bytes_delivered + cb.payload_bytes_delivered;
  }

  Engine engine;
  FramePool frames;
  Side a;
  Side b;
};

}  // namespace bx::sim
