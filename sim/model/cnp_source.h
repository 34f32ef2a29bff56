// SPDX-License-Identifier: GPL-2.0-only
// The notification point of DCQCN for one queue pair (Zhu et al., SIGCOMM 2015, section 3.1; RoCEv2, annex
// A17.9.3): a receiver of packets that a switch has marked says so to their sender, at most once in an
// interval. A CNP is a frame that goes before data, in a class of its own; those that have not left are one.
#pragma once

#include <cstdint>

#include "sim/model/cnp_limiter.h"
#include "sim/model/congestion_control.h"
#include "sim/model/rc_environment.h"
#include "sim/model/units.h"

namespace bx::sim {

class RcQueuePair;

class CnpSource final : public TxSource {
 public:
  explicit CnpSource(RcQueuePair& qp) noexcept : qp_(qp) {}

  void start(const CnpConfig& config);  // to RTR
  void stop() noexcept;                 // to ERR or RESET
  void on_marked(const CnpConfig& config);
  // A CNP is due: at once, or after the notification delay.
  void request();

  TxClass tx_class() const noexcept override { return pending_ ? TxClass::control : TxClass::nothing; }
  Frame* produce() override;

 private:
  [[nodiscard]] Picoseconds& last_of(CnpScope scope) noexcept;

  RcQueuePair& qp_;
  Picoseconds last_ = CnpLimiter::kLongAgo;
  std::uint8_t dscp_ = 0;
  bool pending_ = false;
};

}  // namespace bx::sim
