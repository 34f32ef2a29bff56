// SPDX-License-Identifier: GPL-2.0-only
// What makes a simulated run that run: the digest of every frame that reaches a host, in order, with its
// time. One per simulation; the topology hands it to the hosts' ports. Two runs with equal digests are the
// same run.
#pragma once

#include <cstdint>

#include "libbx/base/digest.h"
#include "sim/model/frame.h"
#include "sim/model/units.h"

namespace bx::sim {

class RunDigest {
 public:
  // Three words a frame: the time; kind, opcode, ECN, QP and PSN; the two hosts and the length. For a PFC
  // frame the quanta stand in the place of the last; an IP frame has a mark in the place of the opcode.
  void delivered(Picoseconds now, const Frame& frame) noexcept {
    digest_.add(static_cast<std::uint64_t>(now.count()));
    if (frame.kind == FrameKind::pfc) {
      digest_.add(kPfcMark | frame.pfc_enable);
      for (const std::uint16_t quanta : frame.pfc_quanta) digest_.add(quanta);
      return;
    }
    const bool ip = frame.kind == FrameKind::ip;
    digest_.add((ip ? kIpMark : std::uint64_t{static_cast<std::uint8_t>(frame.opcode)} << 56U) |
                std::uint64_t{static_cast<std::uint8_t>(frame.ecn)} << 48U |
                std::uint64_t{frame.dst_qp & kQpMask} << 24U | (frame.psn & kQpMask));
    digest_.add(std::uint64_t{frame.src_host} << 48U | std::uint64_t{frame.dst_host} << 32U |
                frame.payload_bytes);
    frames_ += ip ? 0 : 1;
  }
  // Takes in the frames of another part of the network.
  void append(const RunDigest& other) noexcept {
    digest_.add(other.digest_.value());
    frames_ += other.frames_;
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return digest_.value(); }
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }  // RoCE frames delivered to hosts

 private:
  static constexpr std::uint32_t kQpMask = 0xffffffU;        // QP numbers and PSNs have 24 bits
  static constexpr std::uint64_t kPfcMark = 0xffULL << 56U;  // no BTH opcode in use has these values
  static constexpr std::uint64_t kIpMark = 0xfeULL << 56U;
  Digest digest_;
  std::uint64_t frames_ = 0;
};

}  // namespace bx::sim
