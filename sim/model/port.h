// SPDX-License-Identifier: GPL-2.0-only
// One end of a full-duplex link. A port pulls: when its transmitter is idle it asks its owner for the next
// frame, so that queues and scheduling live in one place, the owner (a NIC or a switch). The port itself does
// serialisation, propagation, and the receiving side of PFC: it keeps which priorities the peer has paused
// and until when.
#pragma once

#include <array>
#include <cstdint>

#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/run_digest.h"
#include "sim/model/units.h"

namespace bx::sim {

class Port;

class PortOwner {
 public:
  // The next frame to send, or null. Must not return a RoCE frame of a priority that port.paused(); PFC
  // frames are never paused. Called only while the transmitter is idle; ownership passes to the port.
  virtual Frame* next_frame(Port& port) = 0;
  // A frame has arrived whole (store and forward). Ownership passes to the owner. PFC frames are handled by
  // the port itself and do not come here.
  virtual void receive(Port& port, Frame* frame) = 0;
  // The last bit of a frame has left; the frame itself is on its way to the peer. `wire_bytes`, `priority`
  // and `ingress_port` are those of the frame (PFC frames included): a switch gives buffer back here. The
  // port asks for the next frame right afterwards.
  virtual void transmitted(Port& port, std::uint32_t wire_bytes, std::uint8_t priority,
                           std::uint16_t ingress_port) = 0;

 protected:
  ~PortOwner() = default;
};

struct PortCounters {
  std::uint64_t tx_frames = 0;
  std::uint64_t tx_bytes = 0;  // wire bytes
  std::uint64_t rx_frames = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t pfc_pause_rx = 0;  // PFC frames received that pause at least one priority
  std::uint64_t pfc_resume_rx = 0;
  Picoseconds paused_time{};  // of pauses that have ended, summed over priorities
};

// What a PFC quantum is worth at a rate (IEEE 802.1Q-2018, 36.1.3.2: 512 bit times each).
[[nodiscard]] Picoseconds pfc_quanta_time(std::uint16_t quanta, Rate rate) noexcept;

class Port {
 public:
  Port(Engine& engine, FramePool& pool, PortOwner& owner, std::uint16_t index, Rate rate);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Joins two ports by a link of the given one-way propagation delay; both must be unconnected and of equal
  // rate.
  static void connect(Port& a, Port& b, Picoseconds delay);

  [[nodiscard]] std::uint16_t index() const noexcept { return index_; }
  [[nodiscard]] Rate rate() const noexcept { return serialiser_.rate(); }
  [[nodiscard]] bool busy() const noexcept { return busy_; }
  [[nodiscard]] bool paused(std::uint8_t priority) const noexcept {
    return ((paused_ >> priority) & 1U) != 0;
  }
  [[nodiscard]] std::uint8_t paused_mask() const noexcept { return paused_; }  // bit p: paused(p)
  [[nodiscard]] const PortCounters& counters() const noexcept { return counters_; }
  // Up to this instant, pauses that still last included.
  [[nodiscard]] Picoseconds paused_time() const noexcept;
  // Every frame that arrives at this port is added to `digest`; null ends it. For ports of hosts.
  void set_digest(RunDigest* digest) noexcept { digest_ = digest; }
  // The owner has something to send: starts the transmitter if it is idle.
  void kick();

 private:
  static void on_transmitted(void* port, void*);
  static void on_delivered(void* port, void* frame);
  static void on_pause_check(void* port, void* priority);
  void start(Frame* frame);
  void handle_pfc(const Frame& frame);
  void pause(std::size_t priority, Picoseconds duration);
  void resume(std::size_t priority);
  void schedule_pause_check(std::size_t priority);

  Engine& engine_;
  FramePool& pool_;
  PortOwner& owner_;
  Port* peer_ = nullptr;
  Picoseconds delay_{};
  RunDigest* digest_ = nullptr;
  Serialiser serialiser_;
  std::uint16_t index_;
  bool busy_ = false;
  std::uint8_t paused_ = 0;  // bit p: priority p may not send
  std::array<Picoseconds, kPriorities> paused_until_{};
  std::array<Picoseconds, kPriorities> paused_since_{};
  // When the pending on_pause_check of a priority comes; while it is paused one does, by paused_until_.
  std::array<Picoseconds, kPriorities> check_at_{};
  std::uint32_t tx_wire_bytes_ = 0;
  std::uint8_t tx_priority_ = 0;
  std::uint16_t tx_ingress_port_ = 0;
  PortCounters counters_;
};

}  // namespace bx::sim
