// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/port_faults.h"

#include <algorithm>

#include "sim/model/nic.h"
#include "sim/model/psn.h"

namespace bx::sim {
namespace {

bool is_answer(BthOpcode opcode) noexcept {
  switch (opcode) {
    case BthOpcode::read_response_first:
    case BthOpcode::read_response_middle:
    case BthOpcode::read_response_last:
    case BthOpcode::read_response_only:
    case BthOpcode::acknowledge:
    case BthOpcode::atomic_acknowledge:
      return true;
    default:
      return false;
  }
}

// Whether the fault is about frames of this sort at all.
bool concerns(FaultKind kind, const Frame& frame) noexcept {
  if (kind == FaultKind::pause_loss) return frame.kind == FrameKind::pfc;
  if (kind == FaultKind::host_crash) return true;
  if (frame.kind == FrameKind::pfc) return false;
  if (kind == FaultKind::cnp_loss) return frame.opcode == BthOpcode::cnp;
  if (kind == FaultKind::ecn_mark) return frame.ecn == Ecn::capable;
  return true;
}

void change(const PortFault& fault, Frame& frame, FrameFate& fate) noexcept {
  switch (fault.kind) {
    case FaultKind::corrupt:
      frame.dst_qp = kCorruptedQp;
      // What is recognised by more than its queue pair: the receiver would discard it as well.
      if (frame.opcode == BthOpcode::cnp || frame.kind != FrameKind::roce) fate.lost = true;
      return;
    case FaultKind::ecn_mark:
      frame.ecn = Ecn::congestion_experienced;
      return;
    case FaultKind::wrong_class:
      frame.priority = fault.priority;
      frame.dscp = static_cast<std::uint8_t>(fault.priority << 3U);
      return;
    case FaultKind::reorder:
      fate.overtaken = true;
      fate.late += fault.delay;
      return;
    case FaultKind::delay:
      fate.late += fault.delay;
      return;
    default:
      fate.lost = true;
  }
}

}  // namespace

bool PacketPick::is(const Frame& frame) noexcept {
  if (seen_ >= iteration_ || frame.kind != FrameKind::roce || frame.opcode == BthOpcode::cnp) return false;
  if (is_answer(frame.opcode) != answers_) return false;
  const RcQueuePair* qp = nic_.find_qp(kFirstQp + queue_pair_ - 1);
  if (qp == nullptr || frame.dst_qp != qp->path().peer_qp || frame.dst_host != qp->path().peer_host) {
    return false;
  }
  const std::uint32_t first = answers_ ? qp->path().receive_psn : qp->path().send_psn;
  if (((frame.psn - first) & kPsnMask) != psn_) return false;
  return ++seen_ == iteration_;
}

std::size_t PortFaults::add(const PortFault& fault) {
  faults_.push_back(fault);
  return faults_.size() - 1;
}

void PortFaults::set_active(std::size_t index, bool active) noexcept {
  if (faults_[index].active == active) return;
  faults_[index].active = active;
  active_ += active ? std::size_t{1} : ~std::size_t{0};
}

bool PortFaults::active(FaultKind kind) const noexcept {
  return std::any_of(faults_.begin(), faults_.end(),
                     [&](const PortFault& fault) { return fault.active && fault.kind == kind; });
}

FrameFate PortFaults::apply(Frame& frame) noexcept {
  FrameFate fate;
  for (PortFault& fault : faults_) {
    if (!fault.active || !concerns(fault.kind, frame)) continue;
    const bool hit = fault.pick != nullptr ? fault.pick->is(frame) : fault.random.chance(fault.probability);
    // Each looks at every frame, so that they count and draw alike whatever the others do.
    if (!hit || fate.lost) continue;
    ++*fault.hits;
    change(fault, frame, fate);
  }
  return fate;
}

}  // namespace bx::sim
