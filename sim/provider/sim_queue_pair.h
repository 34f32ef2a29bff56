// SPDX-License-Identifier: GPL-2.0-only
// A queue pair of a simulated device. A post is written to the model's send queue at once and reaches the NIC
// when its doorbell rings: at the end of the CPU time of the turn that posted it.
#pragma once

#include <span>

#include "libbx/fabric/device.h"
#include "libbx/providers/virtual/virtual_reactor.h"
#include "sim/model/rc_queue_pair.h"

namespace bx::sim {

class SimDevice;

class SimQueuePair final : public fabric::QueuePair, private virtual_time::Doorbell {
 public:
  SimQueuePair(SimDevice& device, RcQueuePair& model, const fabric::QpAddress& address) noexcept;
  ~SimQueuePair() override;
  [[nodiscard]] fabric::QpAddress address() const noexcept override { return address_; }
  Result<> connect(const fabric::QpAddress& peer, const fabric::PathConfig& path) override;
  std::size_t post_send(std::span<const fabric::SendWr> requests) noexcept override;
  void fail() noexcept override { model_.to_error(); }

 private:
  void on_doorbell() noexcept override;

  SimDevice& device_;
  RcQueuePair& model_;
  fabric::QpAddress address_;
};

}  // namespace bx::sim
