// SPDX-License-Identifier: GPL-2.0-only
// Between a NIC's queue pairs and its port, when its work costs time (nic_costs.h):
//
//   schedule --(a unit: packet time, misses; then the payload's DMA read)--> staged [p0] .. [p7] --> port
//   port --> receive buffer --(a unit: packet time, misses)--> queue pair
//
// Packets are made when a unit begins with them and leave in that order within their priority; what a fault,
// a pause or congestion control changes afterwards does not call them back. Received packets are taken in the
// order of arrival. Each takes a unit for units / packets_per_second, and for the time of its misses. A
// receive buffer that fills pauses the switch by PFC, priority by priority, and drops when it is full. Frames
// of other network stacks pass by.
//
// Invariants: at most staged_max frames a priority are staged and receive_buffer_bytes wait; at most one
// event each way is pending that is not void, and none when nothing waits; nothing is allocated after
// construction.
#pragma once

#include <array>
#include <cstdint>

#include "libbx/base/ring.h"
#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/nic_costs.h"
#include "sim/model/port.h"
#include "sim/model/tx_schedule.h"

namespace bx::sim {

class NicPipelineOwner {
 public:
  // To the queue pair; what it wants to send is scheduled, not sent.
  virtual void process(Frame* frame) = 0;

 protected:
  ~NicPipelineOwner() = default;
};

class NicPipeline {
 public:
  NicPipeline(Engine& engine, FramePool& frames, TxSchedule& schedule, NicCosts& costs, Port& port,
              NicPipelineOwner& owner);
  NicPipeline(const NicPipeline&) = delete;
  NicPipeline& operator=(const NicPipeline&) = delete;

  // Something may have come to be sendable.
  void kick();
  // For the port: the next frame that is ready, or null; the port is then kicked when one is.
  [[nodiscard]] Frame* next_frame();
  [[nodiscard]] bool waiting() const noexcept { return staged_ > 0 || pfc_pending_ != 0; }  // for the port
  void arrive(Frame* frame);
  // It holds a frame, or bytes of the receive buffer, or has the switch paused.
  [[nodiscard]] bool busy() const noexcept;

 private:
  using Units = std::array<Picoseconds, kUnitsMax>;
  static constexpr Picoseconds kNever = Picoseconds::max();
  struct Staged {
    Frame* frame = nullptr;
    Picoseconds ready{};
    std::uint64_t order = 0;
  };
  struct InService {
    Frame* frame = nullptr;
    Picoseconds finish{};
    Picoseconds context{};
    std::uint32_t unit = 0;
  };
  // Events that are pending, of which only the earliest counts.
  struct Wake {
    Picoseconds at = kNever;
  };

  [[nodiscard]] std::uint32_t earliest(const Units& units) const noexcept;
  void wake_at(Wake& wake, Picoseconds at, EventFn fn);
  static void on_transmit(void* pipeline, void* unused);
  static void on_receive(void* pipeline, void* unused);

  void stage();
  void stage_frame(Frame* frame, std::uint32_t unit);
  [[nodiscard]] std::uint8_t unstageable() const noexcept;
  void advance_receive();
  void begin_service(std::uint32_t unit);
  void finish_service();

  void note_backlog(std::uint8_t priority);
  [[nodiscard]] Frame* make_pfc();
  static void on_refresh(void* pipeline, void* priority);

  Engine& engine_;
  FramePool& frames_;
  TxSchedule& schedule_;
  NicCosts& costs_;
  Port& port_;
  NicPipelineOwner& owner_;
  Picoseconds packet_time_;
  Picoseconds write_slack_;  // how far DMA writes may lag before receiving waits for them

  Units transmit_units_{};
  std::array<Ring<Staged>, kPriorities> staging_;
  std::uint64_t order_ = 0;
  std::uint32_t staged_ = 0;
  Wake transmit_wake_;

  Units receive_units_{};
  FrameQueue received_;
  std::uint64_t received_bytes_ = 0;
  std::array<std::uint64_t, kPriorities> backlog_{};
  Ring<InService> in_service_;
  Picoseconds last_finish_{};
  Wake receive_wake_;

  std::uint8_t xoff_ = 0;         // priorities that we have paused
  std::uint8_t pfc_pending_ = 0;  // to be told
  std::uint8_t refreshing_ = 0;   // on_refresh pending
};

}  // namespace bx::sim
