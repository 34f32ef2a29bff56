// SPDX-License-Identifier: GPL-2.0-only
// What the protocol machines ask of the NIC around them: a clock, timers, a place in the transmit schedule.
// The NIC implements it over an engine and a port; tests drive the machines with a fake.
#pragma once

#include <array>
#include <cstdint>

#include "libbx/base/check.h"
#include "libbx/base/intrusive_list.h"
#include "sim/model/block_pool.h"
#include "sim/model/cnp_limiter.h"
#include "sim/model/frame.h"
#include "sim/model/memory_table.h"
#include "sim/model/timing_wheel.h"
#include "sim/model/units.h"

namespace bx::sim {

class CompletionQueue;
class NicCosts;
class RcQueuePair;

// What a source would send next: short answers go before data.
enum class TxClass : std::uint8_t { nothing, control, data };

// Something with frames to send: one half of a queue pair. The transmitter pulls, so a frame (and its
// payload) is made when it goes on the wire, and never queued in the NIC.
class TxSource : public ListHook<> {
 public:
  [[nodiscard]] virtual TxClass tx_class() const noexcept = 0;
  // The next frame, or null if there is nothing to send after all.
  virtual Frame* produce() = 0;
  // Soon it will be asked for a frame: what it will touch may be fetched.
  virtual void approach(Approach /*approach*/) const noexcept {}
  [[nodiscard]] std::uint8_t priority() const noexcept { return priority_; }
  [[nodiscard]] std::uint8_t port() const noexcept { return port_; }  // of its NIC, from 0 on
  // Off the schedule; who has something to send must be activated again.
  void move_to_port(std::uint8_t port) noexcept {
    unlink();
    port_ = port;
  }

 protected:
  ~TxSource() { unlink(); }
  std::uint8_t priority_ = 0;  // changes only while the source is on no list

 private:
  std::uint8_t port_ = 0;
};

enum class RcTimer : std::uint8_t {
  ack,
  rnr,
  pace,    // data may leave again
  notify,  // a CNP is due
  delayed_ack,
};

// Asynchronous events (IBA 1.4, 11.6.3; ibv_get_async_event(3)). `id` is the number of the completion queue,
// queue pair, shared receive queue or port.
enum class NicEventKind : std::uint8_t {
  cq_overrun,
  qp_fatal,                   // failed for a reason that no completion tells
  qp_request_error,           // likewise: the peer asked for what is illegal
  qp_access_error,            // likewise: the peer's key or range was wrong
  sq_drained,                 // in SQD, and the begun messages are all acknowledged
  communication_established,  // the first packet of the peer came while still in RTR
  last_wqe_reached,  // in ERR: takes no receive of its shared queue any more, and has completed those taken
  srq_limit_reached,
  port_active,
  port_error,
  device_fatal,  // `id` is 0
};

struct NicCounters {
  std::uint64_t packets_tx = 0;
  std::uint64_t packets_rx = 0;
  std::uint64_t packets_retransmitted = 0;
  std::uint64_t packets_duplicate = 0;     // requests received again
  std::uint64_t packets_out_of_order = 0;  // requests past a gap
  std::uint64_t packets_discarded = 0;     // for no queue pair, or one that does not listen
  std::uint64_t icrc_errors = 0;           // corrupted on the way
  std::uint64_t acks_tx = 0;
  std::uint64_t rnr_naks_tx = 0;
  std::uint64_t rnr_naks_rx = 0;
  std::uint64_t sequence_naks_tx = 0;
  std::uint64_t sequence_naks_rx = 0;
  std::uint64_t fatal_naks_tx = 0;
  std::uint64_t implied_naks = 0;  // READ responses or atomic acknowledgements found missing
  std::uint64_t timeouts = 0;
  std::uint64_t completions = 0;
  std::uint64_t requests_posted = 0;
  std::uint64_t receives_consumed = 0;
  std::uint64_t queue_pairs_failed = 0;  // or destroyed with requests outstanding
  std::uint64_t cnps_tx = 0;
  std::uint64_t cnps_rx = 0;
  // Conservation: with nothing failed and nothing outstanding, the sums over all NICs are equal. A READ's
  // bytes count as sent when it is first requested.
  std::uint64_t payload_bytes_sent = 0;       // first transmissions only
  std::uint64_t payload_bytes_delivered = 0;  // accepted in order
};

class RcEnvironment {
 public:
  static constexpr std::size_t kPortsMax = 4;
  // Asked several times a packet, so without a call where the clock is plain memory.
  [[nodiscard]] Picoseconds now() const noexcept {
    return clock_ != nullptr ? Picoseconds{*clock_} : read_clock();
  }
  // `source` has something of that class to send; nothing happens if it is scheduled already. The first frame
  // is pulled later, never from inside the call.
  virtual void activate(TxSource& source, TxClass tx_class) = 0;
  // Calls qp.on_timer(timer) at `when`, unless the queue pair is reset or gone by then.
  virtual void schedule_timer(RcQueuePair& qp, RcTimer timer, Picoseconds when) = 0;
  // Calls qp.on_doorbell() at `when`, likewise.
  virtual void schedule_doorbell(RcQueuePair& qp, Picoseconds when) = 0;
  // Calls cq.on_wake(ticket) at `when`, unless it is gone by then.
  virtual void schedule_wake(CompletionQueue& cq, std::uint32_t ticket, Picoseconds when) = 0;
  // The completion of send-queue entry `index` of `qp` has been polled: its slot is free.
  virtual void retire(std::uint32_t qp, std::uint64_t index) = 0;
  // The NIC tells its listener, and fails the queue pairs of an overrun completion queue, in an event of its
  // own.
  virtual void raise(NicEventKind kind, std::uint32_t id) = 0;

  [[nodiscard]] FramePool& frames() noexcept { return frames_; }
  [[nodiscard]] MemoryTable& memory() noexcept { return memory_; }
  [[nodiscard]] NicCounters& counters() noexcept { return counters_; }
  [[nodiscard]] const NicCounters& counters() const noexcept { return counters_; }
  // What queue pairs hold while they are busy; outlives them.
  [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }
  [[nodiscard]] CnpLimiter& cnp_limiter() noexcept { return cnp_limiter_; }
  // Null: its work costs what NicConfig's two latencies say.
  [[nodiscard]] NicCosts* costs() const noexcept { return costs_; }
  // See rc_memory.h; by default everything is carried.
  [[nodiscard]] std::uint64_t payload_kept() const noexcept { return payload_kept_; }
  [[nodiscard]] std::uint16_t host() const noexcept { return hosts_[0]; }
  // The address of a port, from 0 on.
  [[nodiscard]] std::uint16_t host(std::uint8_t port) const noexcept { return hosts_[port]; }
  [[nodiscard]] std::uint8_t port_count() const noexcept { return port_count_; }

 protected:
  // `clock`: where the picoseconds stand, or null to have read_clock() called.
  RcEnvironment(FramePool& frames, std::uint16_t host, const std::int64_t* clock)
      : clock_(clock), frames_(frames), memory_(host), hosts_{host} {}
  ~RcEnvironment() = default;
  [[nodiscard]] virtual Picoseconds read_clock() const noexcept = 0;
  void add_port(std::uint16_t host) {
    BX_CHECK(port_count_ < kPortsMax, "a NIC has at most four ports");
    hosts_[port_count_++] = host;
  }
  void set_costs(NicCosts* costs) noexcept { costs_ = costs; }
  void set_payload_kept(std::uint64_t bytes) noexcept { payload_kept_ = bytes; }

 private:
  const std::int64_t* clock_;
  FramePool& frames_;
  MemoryTable memory_;
  NicCounters counters_;
  CnpLimiter cnp_limiter_;
  std::array<std::uint16_t, kPortsMax> hosts_;
  std::uint8_t port_count_ = 1;
  BlockPool blocks_;
  NicCosts* costs_ = nullptr;
  std::uint64_t payload_kept_ = UINT64_MAX;
};

}  // namespace bx::sim
