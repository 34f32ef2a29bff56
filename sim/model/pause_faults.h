// SPDX-License-Identifier: GPL-2.0-only
// Two ways in which a NIC pauses its switch port: without reason and end, and because it is too slow for what
// arrives.
#pragma once

#include <cstdint>

#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/nic.h"
#include "sim/model/port.h"
#include "sim/model/units.h"

namespace bx::sim {

// Tells the peer of a port which priorities are to pause, and refreshes that at half the longest pause.
class PauseSender {
 public:
  PauseSender(Engine& engine, FramePool& pool, Port& port);
  PauseSender(const PauseSender&) = delete;
  PauseSender& operator=(const PauseSender&) = delete;
  // Bit p: priority p is to pause. Those that no longer are get an XON.
  void pause(std::uint8_t priorities);
  [[nodiscard]] std::uint8_t paused() const noexcept { return priorities_; }
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

 private:
  static constexpr std::uint16_t kQuanta = 65535;
  static void on_refresh(void* sender, void* ticket);
  void send(std::uint8_t enable);

  Engine& engine_;
  FramePool& pool_;
  Port& port_;
  std::uint8_t priorities_ = 0;
  std::uint64_t ticket_ = 0;  // of the refresh that counts
  std::uint64_t frames_ = 0;
};

// A NIC whose way to memory is slower than its link: what arrives waits in the NIC's buffer, and the switch
// port is paused while that is above `xoff_bytes`, until it is below `xon_bytes`. The buffer itself never
// overflows: it is taken to have headroom. Sizes are assumptions: NICs keep some hundred KiB.
//
// It stands before whatever filter the NIC has when it starts, which must outlive it and gets each frame when
// its bytes are written. It goes when it stops, or if another filter has come to stand before it by then, it
// stays and hands every frame on.
class SlowReceiver final : public FrameFilter {
 public:
  static constexpr std::uint64_t kXoffBytes = 128 * 1024;
  static constexpr std::uint64_t kXonBytes = 64 * 1024;

  SlowReceiver(Engine& engine, Nic& nic, PauseSender& pauses) : engine_(engine), nic_(nic), pauses_(pauses) {}
  SlowReceiver(const SlowReceiver&) = delete;
  SlowReceiver& operator=(const SlowReceiver&) = delete;
  // From now on, or (after stop) what still waits goes at once.
  void start(Rate rate);
  void stop();
  // Takes it from the NIC with whatever waits: for the end of the simulation.
  void leave() noexcept;
  void filter(Nic& nic, Frame* frame) override;
  [[nodiscard]] std::uint64_t frames_held() const noexcept { return frames_held_; }

 private:
  static void on_written(void* receiver, void* unused);
  void write_next();
  void hand_on(Frame* frame);

  Engine& engine_;
  Nic& nic_;
  PauseSender& pauses_;
  FrameFilter* next_ = nullptr;  // null: the NIC itself
  bool linked_ = false;          // it is the NIC's filter, or one before it hands on to it
  bool slow_ = false;
  FrameQueue waiting_;
  Serialiser memory_{Rate{1}};
  std::uint64_t bytes_ = 0;  // waiting, by bytes of the wire
  std::uint64_t frames_held_ = 0;
  std::uint8_t priorities_ = 0;  // that frames have come in
  bool writing_ = false;
};

}  // namespace bx::sim
