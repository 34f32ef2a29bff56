// SPDX-License-Identifier: BSD-3-Clause
// Any fabric, with faults: the same seed and plan give the same faults at the same places. With an empty plan
// it changes nothing.
//
// What it breaks it breaks within the contract of device.h (a queue pair that fails flushes in order, a short
// post is back-pressure), except for wake_up_lost: that breaks the promise of arm() on purpose, for devices
// and interrupt paths that do.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "libbx/fabric/decorator.h"
#include "libbx/fabric/fault_plan.h"

namespace bx::fabric {

class FaultFabric final : public FabricDecorator {
 public:
  FaultFabric(std::unique_ptr<Fabric> inner, FaultPlan plan);
  // How many faults of the kind have struck so far, on all hosts.
  [[nodiscard]] std::uint64_t injected(FaultKind kind) const noexcept {
    return injected_[static_cast<std::size_t>(kind)];
  }

 protected:
  std::unique_ptr<Host> decorate_host(std::unique_ptr<Host> inner) override;

 private:
  FaultPlan plan_;
  std::array<std::uint64_t, kFaultKinds> injected_{};
};

}  // namespace bx::fabric
