// SPDX-License-Identifier: GPL-2.0-only
// A NIC and a switch as ns-3 objects: attributes to read and trace sources to connect. They observe the model
// (NicObserver, SwitchObserver) from when they are attached to when they are disposed of, and nothing of them
// lies on the way of a packet that goes well.
//
//   TypeId              attributes (read only)                      trace sources
//   bx::sim::RoceNic    Host, DataRate, PacketsTx, PacketsRx,       Cnp(source host, QP), Pause(priorities),
//                       Retransmissions, PausedTime                 Discard(source host, QP)
//   bx::sim::RoceSwitch Ports, BufferBytes, BufferBytesMax,         Drop(source host, priority), Mark(port,
//                       PauseFrames, Drops, LosslessDrops           priority), Xoff(port, priority)
#pragma once

#include <ns3/data-rate.h>
#include <ns3/nstime.h>
#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include <cstdint>

#include "sim/model/nic.h"
#include "sim/model/switch.h"

namespace bx::sim {

class RoceNic final : public ns3::Object, private NicObserver {
 public:
  static ns3::TypeId GetTypeId();
  using QpTrace = void (*)(std::uint16_t host, std::uint32_t qp);
  using PauseTrace = void (*)(std::uint8_t priorities);

  // Once; `nic` must outlive the object or its Dispose(), and has no other observer.
  void attach(Nic& nic);

 private:
  void DoDispose() override;
  void on_cnp(const Frame& frame) override { cnp_(frame.src_host, frame.dst_qp); }
  void on_pause(std::uint8_t priorities) override { pause_(priorities); }
  void on_discard(const Frame& frame) override { discard_(frame.src_host, frame.dst_qp); }
  [[nodiscard]] std::uint64_t host() const { return nic_->host(); }
  [[nodiscard]] ns3::DataRate data_rate() const;
  [[nodiscard]] std::uint64_t packets_tx() const { return nic_->counters().packets_tx; }
  [[nodiscard]] std::uint64_t packets_rx() const { return nic_->counters().packets_rx; }
  [[nodiscard]] std::uint64_t retransmissions() const { return nic_->counters().packets_retransmitted; }
  [[nodiscard]] ns3::Time paused_time() const;

  Nic* nic_ = nullptr;
  ns3::TracedCallback<std::uint16_t, std::uint32_t> cnp_;
  ns3::TracedCallback<std::uint8_t> pause_;
  ns3::TracedCallback<std::uint16_t, std::uint32_t> discard_;
};

class RoceSwitch final : public ns3::Object, private SwitchObserver {
 public:
  static ns3::TypeId GetTypeId();
  using FrameTrace = void (*)(std::uint16_t host_or_port, std::uint8_t priority);

  // As RoceNic::attach.
  void attach(Switch& fabric_switch);

 private:
  void DoDispose() override;
  void on_drop(const Frame& frame) override { drop_(frame.src_host, frame.priority); }
  void on_mark(const Frame& frame, std::uint16_t out_port) override { mark_(out_port, frame.priority); }
  void on_xoff(std::uint16_t in_port, std::uint8_t priority) override { xoff_(in_port, priority); }
  [[nodiscard]] std::uint64_t ports() const { return switch_->ports(); }
  [[nodiscard]] std::uint64_t buffer_bytes() const { return switch_->buffer().used_bytes(); }
  [[nodiscard]] std::uint64_t buffer_bytes_max() const { return switch_->buffer().used_bytes_max(); }
  [[nodiscard]] std::uint64_t pause_frames() const { return switch_->totals().pause_frames; }
  [[nodiscard]] std::uint64_t drops() const { return switch_->totals().drops; }
  [[nodiscard]] std::uint64_t lossless_drops() const { return switch_->totals().lossless_drops; }

  Switch* switch_ = nullptr;
  ns3::TracedCallback<std::uint16_t, std::uint8_t> drop_;
  ns3::TracedCallback<std::uint16_t, std::uint8_t> mark_;
  ns3::TracedCallback<std::uint16_t, std::uint8_t> xoff_;
};

}  // namespace bx::sim
