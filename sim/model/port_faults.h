// SPDX-License-Identifier: GPL-2.0-only
// What goes wrong with the frames that one port sends. A port without faults has none of this and tests one
// byte a frame, together with its other hooks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "libbx/base/prng.h"
#include "sim/model/fault_plan.h"
#include "sim/model/frame.h"
#include "sim/model/units.h"

namespace bx::sim {

class Nic;

// The queue pair number of a corrupted packet: the one that RC queue pairs never have (IBA 1.4, 9.2.1 keeps
// it for multicast), so that the receiving NIC finds nothing to give it to, and counts it as an ICRC error.
inline constexpr std::uint32_t kCorruptedQp = 0xffffff;

// One packet of one queue pair, recognised among all that its host sends.
class PacketPick {
 public:
  PacketPick(Nic& nic, std::uint32_t queue_pair, const FaultSpec& fault)
      : nic_(nic),
        queue_pair_(queue_pair),
        psn_(fault.psn),
        iteration_(fault.iteration),
        answers_(fault.packets == FaultPackets::answers) {}
  // True for the frame, once.
  [[nodiscard]] bool is(const Frame& frame) noexcept;

 private:
  Nic& nic_;
  std::uint32_t queue_pair_;
  std::uint32_t psn_;
  std::uint32_t iteration_;
  std::uint32_t seen_ = 0;
  bool answers_;
};

struct PortFault {
  FaultKind kind = FaultKind::loss;
  Prng random;
  double probability = 1;
  PacketPick* pick = nullptr;  // null: at random
  Picoseconds delay{};
  std::uint8_t priority = 0;  // of wrong_class
  bool active = false;
  std::uint64_t* hits = nullptr;
};

// What becomes of a frame.
struct FrameFate {
  bool lost = false;
  bool overtaken = false;  // `late` does not hold up what follows
  Picoseconds late{};
};

class PortFaults {
 public:
  // The index of the fault, inactive so far.
  std::size_t add(const PortFault& fault);
  void set_active(std::size_t index, bool active) noexcept;
  [[nodiscard]] bool any_active() const noexcept { return active_ != 0; }
  [[nodiscard]] bool active(FaultKind kind) const noexcept;
  // May change the frame.
  FrameFate apply(Frame& frame) noexcept;

 private:
  std::vector<PortFault> faults_;
  std::size_t active_ = 0;
};

}  // namespace bx::sim
