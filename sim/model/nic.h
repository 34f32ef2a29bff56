// SPDX-License-Identifier: GPL-2.0-only
// A RoCE NIC: the objects that verbs name, and the machinery that moves frames between queue pairs and its
// ports, of which it has one, or up to four, each with its own schedule. A queue pair is bound to one. It
// knows no host software; sim/provider puts it behind the library's boundary.
//
//   post/ring --(fetch latency)--> requester --\                       /--> requester (answers)
//                                               schedule -> port ... port
//   poll <--(write-back latency)-- responder --/                       \--> responder (requests)
//
// Both latencies are pipelined: they delay each request and each completion, and never the rate. Payload is
// read from memory when its packet is made and written when its packet arrives.
//
// Invariants: objects are found by number in O(1); a queue pair with nothing to do has no event pending, bar
// one void timer; nothing is allocated after an object is made and connected, but for the peak of what is
// busy at once (BlockPool) and once a queue pair at its first READ or atomic answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/result.h"
#include "sim/model/completion_queue.h"
#include "sim/model/congestion_control.h"
#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/nic_costs.h"
#include "sim/model/nic_pipeline.h"
#include "sim/model/port.h"
#include "sim/model/rc_environment.h"
#include "sim/model/rc_queue_pair.h"
#include "sim/model/shared_receive_queue.h"
#include "sim/model/slot_table.h"
#include "sim/model/tx_schedule.h"

namespace bx::sim {

class Nic;

struct NicConfig {
  std::uint16_t host = 0;
  Rate rate{};
  // Doorbell to first packet: an MMIO write, then the fetch of WQE and payload, each a PCIe round trip of
  // about 150 ns in an idle machine. An assumption of the right order, not a measurement.
  Picoseconds fetch_latency = nanoseconds{300};
  // Last bit of a packet to a completion that can be polled: DMA write of payload and CQE. Assumed likewise.
  Picoseconds write_back_latency = nanoseconds{300};
  // Packets a source sends in its turn. One interleaves most finely: a small message waits for no more than
  // one packet of each competitor. A turn costs this model nothing, so there is no reason for longer ones.
  std::uint32_t quantum_packets = 1;
  std::uint32_t ack_interval = 64;  // see RcQueuePairConfig
  RecoveryConfig recovery{};
  std::uint64_t message_bytes_max = 1ULL << 30U;
  CongestionConfig congestion{};
  // Each more port that the NIC has, of the same rate, has an address of its own, and so counts as a host of
  // the network. At most three.
  std::vector<std::uint16_t> more_hosts{};
  // Takes the place of the two latencies when it is enabled.
  NicCostConfig costs{};
  // Lengths only above this (see rc_memory.h); every byte is carried by default.
  std::uint64_t payload_kept = UINT64_MAX;
};

// Asynchronous events, each from an engine event of its own.
class NicListener {
 public:
  virtual void on_nic_event(NicEventKind kind, std::uint32_t id) = 0;

 protected:
  ~NicListener() = default;
};

// Stands between the port and the queue pairs: for faults and tests. Owns the frame it is given; hands it on,
// at once or later, once or (copied) more often, with nic.accept().
class FrameFilter {
 public:
  virtual void filter(Nic& nic, Frame* frame) = 0;

 protected:
  ~FrameFilter() = default;
};

// Takes what arrives for the host's other network stack: frames of kind `ip`. The frame stays the NIC's, and
// is freed with its rider when the call returns.
class IpSink {
 public:
  virtual void take(const Frame& frame) = 0;

 protected:
  ~IpSink() = default;
};

// Sees what a researcher traces, none of it on the way of a packet that goes well.
class NicObserver {
 public:
  virtual void on_cnp(const Frame& frame) = 0;         // received
  virtual void on_pause(std::uint8_t priorities) = 0;  // the switch has paused these: bit p, priority p
  virtual void on_discard(const Frame& frame) = 0;     // received, and nobody's

 protected:
  ~NicObserver() = default;
};

// What is unfinished. All zero when a run has come to rest.
struct NicAudit {
  std::uint64_t sends_outstanding = 0;  // posted and not complete
  std::uint64_t responders_busy = 0;    // a receive half filled, or answers unsent
  std::uint64_t timers_armed = 0;
  std::uint64_t sources_scheduled = 0;
  std::uint64_t completions_unpolled = 0;
  // Queue pairs with nothing outstanding of which something was sent and never acknowledged, or whose
  // responder keeps early packets.
  std::uint64_t unacknowledged = 0;
  std::uint64_t pipelines_busy = 0;  // frames, bytes of a receive buffer, or a pause of ours
  [[nodiscard]] bool at_rest() const noexcept {
    return sends_outstanding + responders_busy + timers_armed + sources_scheduled + unacknowledged +
               pipelines_busy ==
           0;
  }
};

// A million queue pairs, and 16 generations of numbers that are used again.
inline constexpr unsigned kQpSlotBits = 20;

class Nic final : public PortOwner, public RcEnvironment, private NicPipelineOwner {
 public:
  Nic(Engine& engine, FramePool& frames, const NicConfig& config);
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  [[nodiscard]] Port& port() noexcept { return first_.port; }
  [[nodiscard]] const Port& port() const noexcept { return first_.port; }
  [[nodiscard]] Port& port(std::uint8_t index) noexcept { return side(index).port; }  // from 0 on
  [[nodiscard]] const NicConfig& config() const noexcept { return config_; }
  void set_listener(NicListener* listener) noexcept { listener_ = listener; }
  void set_filter(FrameFilter* filter) noexcept { filter_ = filter; }
  [[nodiscard]] FrameFilter* filter() const noexcept { return filter_; }
  // Null for none: such frames are then discarded and counted.
  void set_ip_sink(IpSink* sink) noexcept { ip_sink_ = sink; }
  void set_observer(NicObserver* observer) noexcept { observer_ = observer; }
  // A source that is not a queue pair has something to send: it shares the port by TxSchedule's rules.
  void submit(TxSource& source) {
    activate(source, source.tx_class());
    kick();
  }

  // Errors: invalid_argument (a size of zero, no completion queue), exhausted (65536 of a kind; of queue
  // pairs 2^20).
  // `listener` may be null.
  Result<CompletionQueue*> create_cq(std::uint32_t depth, CompletionListener* listener);
  Result<SharedReceiveQueue*> create_srq(std::uint32_t depth, std::uint32_t segments_max);
  Result<RcQueuePair*> create_qp(RcQueuePairConfig config);  // message_bytes_max, ack_interval are the NIC's
  // Outstanding work of a destroyed queue pair is forgotten; completions that are queued stay. A queue with
  // queue pairs attached may not be destroyed.
  void destroy(CompletionQueue& cq);
  void destroy(SharedReceiveQueue& srq);
  void destroy(RcQueuePair& qp);
  [[nodiscard]] RcQueuePair* find_qp(std::uint32_t number) const noexcept { return qps_.find(number); }

  // visit(RcQueuePair&) for each, by number.
  template <class Visit>
  void for_each_qp(Visit visit) const {
    qps_.for_each(visit);
  }
  // To the error state, and the listener is told; nothing happens to one that is there or in RESET already.
  void fail_qp(RcQueuePair& qp);
  void fail_all_qps();

  // The doorbell of a send queue: what was posted reaches the wire after the fetch latency.
  void ring(RcQueuePair& qp) {
    if (costs() != nullptr) return ring_at_cost(qp);
    qp.ring(now() + config_.fetch_latency);
  }
  // Hands a frame to its queue pair and frees it.
  void accept(Frame* frame);

  // The device fails and starts again: an event says so, every queue pair goes to ERR without a word to its
  // peer, and its work completes as flushed. Memory stays registered, and new queue pairs work.
  void reset_device();

  [[nodiscard]] NicAudit audit() const;
  [[nodiscard]] Picoseconds last_arrival() const noexcept { return last_arrival_; }  // of a frame

  // PortOwner
  NextFrame next_frame(Port& port) override;
  void receive(Port& port, Frame* frame) override;
  void transmitted(Port& /*port*/, std::uint32_t /*wire_bytes*/, std::uint8_t /*priority*/,
                   std::uint16_t /*ingress_port*/) override {}
  void approach(Port& port, Frame* frame, Approach approach) override;
  void link_changed(Port& port, LinkState state) override;

  void pause_began(Port& port, std::uint8_t priorities) override;

  // RcEnvironment
  void activate(TxSource& source, TxClass tx_class) override {
    side(source.port()).schedule.add(source, tx_class);
  }
  void schedule_timer(RcQueuePair& qp, RcTimer timer, Picoseconds when) override;
  void schedule_doorbell(RcQueuePair& qp, Picoseconds when) override;
  void schedule_wake(CompletionQueue& cq, std::uint32_t ticket, Picoseconds when) override;
  void retire(std::uint32_t qp, std::uint64_t index) override;
  void raise(NicEventKind kind, std::uint32_t id) override;

 private:
  [[nodiscard]] Picoseconds read_clock() const noexcept override { return engine_.now(); }
  static void on_timer(void* nic, void* argument);
  static void on_doorbell(void* nic, void* argument);
  static void on_wake(void* nic, void* argument);
  static void on_raise(void* nic, void* argument);
  void fail_users_of(std::uint32_t cq_number);
  void ring_at_cost(RcQueuePair& qp);
  void process(Frame* frame) override;
  void approach_sent(const Port& port, Approach approach);
  void note_cnp(const Frame& frame);
  void discard(const Frame& frame);
  void turn_on_costs();
  void kick();
  struct PortSide {
    PortSide(Engine& engine, FramePool& frames, Nic& nic, std::uint16_t host)
        : port(engine, frames, nic, host, nic.config_.rate), schedule(nic.config_.quantum_packets) {}
    Port port;
    TxSchedule schedule;
    [[nodiscard]] bool busy() const noexcept { return pipeline != nullptr && pipeline->busy(); }
    std::unique_ptr<NicPipeline> pipeline;  // when costs are on
  };
  [[nodiscard]] PortSide& side(std::uint8_t index) noexcept {
    return index == 0 ? first_ : *more_[index - 1U];
  }
  static void kick(PortSide& side);
  [[nodiscard]] PortSide& side_of(std::uint16_t host) noexcept;
  [[nodiscard]] std::uint8_t index_of(const Port& port) const noexcept;

  Engine& engine_;
  NicConfig config_;
  std::unique_ptr<NicCosts> nic_costs_;  // null when they are off; its ports share bus and caches
  PortSide first_;  // ports outlive the queue pairs, whose sources are on their schedules
  std::vector<std::unique_ptr<PortSide>> more_;
  NicListener* listener_ = nullptr;
  FrameFilter* filter_ = nullptr;
  IpSink* ip_sink_ = nullptr;
  NicObserver* observer_ = nullptr;
  Picoseconds last_arrival_{};
  SlotTable<CompletionQueue> cqs_;
  SlotTable<SharedReceiveQueue> srqs_;
  SlotTable<RcQueuePair, kQpSlotBits> qps_;
};

}  // namespace bx::sim
