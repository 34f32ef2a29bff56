// SPDX-License-Identifier: GPL-2.0-only
// A world without engine or port for one half of a queue pair: time moves when the test says so, frames are
// pulled by the test and stay in its hands, timers are noted.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/model/rc_queue_pair.h"

namespace bx::sim {

class FakeEnvironment final : public RcEnvironment {
 public:
  FakeEnvironment() : RcEnvironment(pool, 0, nullptr) {}

  [[nodiscard]] Picoseconds read_clock() const noexcept override { return time; }
  void activate(TxSource& source, TxClass /*tx_class*/) override {
    if (std::ranges::find(active, &source) == active.end()) active.push_back(&source);
  }
  void schedule_timer(RcQueuePair& /*qp*/, RcTimer timer, Picoseconds when) override {
    timers.emplace_back(timer, when);
  }
  void schedule_doorbell(RcQueuePair& /*qp*/, Picoseconds when) override { doorbells.push_back(when); }
  void schedule_wake(CompletionQueue& /*cq*/, std::uint32_t ticket, Picoseconds when) override {
    wakes.emplace_back(ticket, when);
  }
  void retire(std::uint32_t /*qp*/, std::uint64_t index) override { retired.push_back(index); }
  void raise(NicEventKind kind, std::uint32_t id) override { raised.emplace_back(kind, id); }

  // Everything that the active sources have to send now, in order; payloads are freed.
  std::vector<Frame> pull() {
    std::vector<Frame> all;
    for (std::size_t i = 0; i < active.size(); ++i) {
      while (Frame* frame = active[i]->produce()) {
        all.push_back(*frame);
        pool.free(frame);
      }
    }
    active.clear();
    return all;
  }

  FramePool pool;
  Picoseconds time{};
  std::vector<TxSource*> active;
  std::vector<std::pair<RcTimer, Picoseconds>> timers;
  std::vector<Picoseconds> doorbells;
  std::vector<std::pair<std::uint32_t, Picoseconds>> wakes;
  std::vector<std::uint64_t> retired;
  std::vector<std::pair<NicEventKind, std::uint32_t>> raised;
};

// One queue pair in RTS in a fake environment. Its peer is the test.
class FakeRig {
 public:
  explicit FakeRig(const RcPath& path = {}, std::uint32_t send_depth = 64)
      : memory(1U << 20U),
        cq(environment, 1, 256, Picoseconds{0}, nullptr),
        srq(environment, 1, 16, 4),
        qp(environment, 2,
           {.send_cq = &cq, .receive_cq = &cq, .srq = &srq, .send = {send_depth, 4, 64}, .ack_interval = 4}) {
    keys = environment.memory()
               .add(memory, MemoryAccess::local_write | MemoryAccess::remote_read |
                                MemoryAccess::remote_write | MemoryAccess::remote_atomic)
               .value();
    BX_CHECK(qp.to_init() && qp.to_ready_to_receive(path) && qp.to_ready_to_send(), "the path is legal");
  }

  [[nodiscard]] std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  void post(RequestOpcode opcode, std::uint32_t length, std::uint64_t id = 0) {
    const Segment segment{at(0), length, keys.lkey};
    const SendRequest request{
        .id = id, .segments = {&segment, 1}, .remote_addr = 1000, .rkey = 77, .opcode = opcode};
    qp.post_send({&request, 1});
    qp.ring(environment.now());
    qp.on_doorbell();
  }
  // The peer says something; `payload` bytes of it are zero.
  void hear(const Frame& heard, std::uint32_t payload = 0) {
    Frame frame = heard;
    frame.payload_bytes = payload;
    if (payload > 0) {
      frame.payload = environment.pool.make_payload();
      frame.payload->bytes.fill(std::byte{0});
    }
    qp.receive(frame);
    if (payload == 0) return;
    Frame* carrier = environment.pool.make();
    carrier->payload = frame.payload;
    environment.pool.free(carrier);
  }
  void hear_ack(std::uint32_t psn, std::uint8_t syndrome = kSyndromeAck) {
    Frame frame;
    frame.opcode = BthOpcode::acknowledge;
    frame.psn = psn;
    frame.syndrome = syndrome;
    hear(frame);
  }
  std::vector<WorkCompletion> completions() {
    std::vector<WorkCompletion> all(cq.size());
    all.resize(cq.poll(all));
    return all;
  }

  FakeEnvironment environment;
  std::vector<std::byte> memory;
  MemoryKeys keys;
  CompletionQueue cq;
  SharedReceiveQueue srq;
  RcQueuePair qp;
};

}  // namespace bx::sim
