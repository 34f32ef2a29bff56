// SPDX-License-Identifier: GPL-2.0-only
// A window that follows the round-trip time (Kumar et al., "Swift: delay is simple and effective for
// congestion control in the datacenter", SIGCOMM 2020, section 3 and algorithm 1):
//
//   delay under target:  window += ai for each window acknowledged (ai each packet while it is below one)
//   over it:             window *= 1 - min(beta * (delay - target) / delay, decrease_max), once a round trip
//   target:              base_target + flow scaling, which grows as 1 / sqrt(window): many flows, whose
//                        windows are small, are let keep a longer queue
//
// A window below one packet is one packet in flight and a pause between packets. The delay is one sample a
// round trip, from a packet's first bit to its acknowledgement; there is no term for hops, and none for the
// hosts, whose part is in base_target. What the paper keeps apart as endpoint delay does not exist in this
// NIC: it acknowledges at once.
//
// A window bounds what a requester has sent and not heard of. READ responses have no acknowledgement and so
// no window of their own: a READ counts in the window of who asks for it, with all its packets at once.
#pragma once

#include <cstdint>

#include "sim/model/pacer.h"
#include "sim/model/units.h"

namespace bx::sim {

// Windows are in packets of the path MTU. The values without a source are ours, for fabrics of 100 Gb/s and a
// few microseconds: a target of about three times the idle round trip.
struct SwiftConfig {
  Picoseconds base_target = microseconds{15};
  double ai = 1;              // packets a round trip; the paper's 1.0
  double beta = 0.8;          // the paper's
  double decrease_max = 0.5;  // the paper's max_mdf
  double window_min = 0.01;
  double window_max = 4096;
  double window_initial = 0;  // 0: what line rate sends in base_target, as RoCE starts at line rate
  Picoseconds flow_scaling_range = microseconds{30};  // at flow_scaling_window_min; 0: no flow scaling
  double flow_scaling_window_min = 0.1;               // the paper's fs_min_cwnd
  double flow_scaling_window_max = 100;               // the paper's fs_max_cwnd
};

class Swift {
 public:
  // `packet_bytes`: of a full packet on the wire.
  Swift(const SwiftConfig& config, Rate line, std::uint32_t packet_bytes) noexcept;

  void on_ack(std::uint64_t packets) noexcept { acknowledged_ += packets; }
  void on_rtt(Picoseconds now, Picoseconds rtt, Pacer& pacer) noexcept;
  // A gap was reported, or nothing was heard at all.
  void on_loss(Picoseconds now, Pacer& pacer) noexcept;

  // In whole packets, at least one.
  [[nodiscard]] std::uint32_t packets() const noexcept;
  [[nodiscard]] std::uint64_t window() const noexcept { return window_; }  // in 2^-16 packets
  [[nodiscard]] Picoseconds target() const noexcept;
  // What the window makes of the latest round trip; the line's rate at most.
  [[nodiscard]] std::uint64_t rate() const noexcept;

 private:
  static constexpr std::uint64_t kOne = 1U << 16U;

  void shrink(Picoseconds now, std::uint64_t part) noexcept;
  void pace(Picoseconds now, Pacer& pacer) noexcept;

  const SwiftConfig* config_;
  std::uint64_t line_;
  std::uint32_t packet_bytes_;
  std::uint64_t window_ = kOne;
  std::uint64_t acknowledged_ = 0;  // packets since the latest sample
  Picoseconds rtt_;                 // latest
  Picoseconds last_decrease_ = Picoseconds::min() / 2;
};

}  // namespace bx::sim
