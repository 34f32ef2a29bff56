// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/congestion_control.h"

#include <algorithm>

namespace bx::sim {

void CongestionControl::start(std::uint32_t packet_bytes) noexcept {
  pacer_ = Pacer();
  window_ = kNoWindow;
  switch (config_->algorithm) {
    case CongestionAlgorithm::none:
      machine_.emplace<std::monostate>();
      break;
    case CongestionAlgorithm::dcqcn:
      machine_.emplace<Dcqcn>(config_->dcqcn, line_);
      break;
    case CongestionAlgorithm::swift:
      window_ = machine_.emplace<Swift>(config_->swift, line_, packet_bytes).packets();
      break;
  }
}

Picoseconds CongestionControl::resume_at() const noexcept {
  const auto* dcqcn = std::get_if<Dcqcn>(&machine_);
  return dcqcn == nullptr ? pacer_.ready_at() : std::min(pacer_.ready_at(), dcqcn->next_change());
}

void CongestionControl::sent(Picoseconds now, std::uint32_t wire_bytes) noexcept {
  if (auto* dcqcn = std::get_if<Dcqcn>(&machine_)) {
    dcqcn->advance(now, pacer_);
    pacer_.sent(now, wire_bytes);
    dcqcn->on_sent(now, wire_bytes, pacer_);
  } else {
    pacer_.sent(now, wire_bytes);
  }
}

void CongestionControl::on_cnp(Picoseconds now) noexcept {
  if (auto* dcqcn = std::get_if<Dcqcn>(&machine_)) {
    dcqcn->advance(now, pacer_);
    dcqcn->on_cnp(now, pacer_);
  }
}

void CongestionControl::on_rtt(Picoseconds now, Picoseconds rtt) noexcept {
  if (auto* swift = std::get_if<Swift>(&machine_)) {
    swift->on_rtt(now, rtt, pacer_);
    window_ = swift->packets();
  }
}

void CongestionControl::on_loss(Picoseconds now) noexcept {
  if (auto* swift = std::get_if<Swift>(&machine_)) {
    swift->on_loss(now, pacer_);
    window_ = swift->packets();
  }
}

std::uint64_t CongestionControl::rate(Picoseconds now) noexcept {
  if (auto* dcqcn = std::get_if<Dcqcn>(&machine_)) {
    dcqcn->advance(now, pacer_);
    return dcqcn->rate();
  }
  if (const auto* swift = std::get_if<Swift>(&machine_)) return swift->rate();
  return line_.bits_per_second;
}

}  // namespace bx::sim
