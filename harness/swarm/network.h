// SPDX-License-Identifier: GPL-2.0-only
// The network that a swarm lives in: loopback or sim, behind a FaultFabric.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/swarm/plan.h"
#include "libbx/base/result.h"
#include "libbx/fabric/fault_fabric.h"

namespace bx::harness {

class SwarmNetwork {
 public:
  static Result<std::unique_ptr<SwarmNetwork>> create(const SwarmPlan& plan);
  virtual ~SwarmNetwork() = default;
  [[nodiscard]] fabric::Fabric& fabric() noexcept { return *fabric_; }
  [[nodiscard]] virtual std::uint64_t digest() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t events() const noexcept = 0;
  virtual void start_faults() {}
  // Receiver-not-ready NAKs so far, where the network counts them.
  [[nodiscard]] virtual std::uint64_t rnr_naks() const { return 0; }
  // Promises of the network itself that are broken.
  [[nodiscard]] virtual std::vector<std::string> breaches() const { return {}; }

 protected:
  std::unique_ptr<fabric::FaultFabric> fabric_;
};

}  // namespace bx::harness
