// SPDX-License-Identifier: GPL-2.0-only
// From what a scenario sets to what the model is made of, with every check that can be made before a run.
#pragma once

#include <cstdint>

#include "libbx/base/result.h"
#include "sim/model/nic.h"
#include "sim/model/topology.h"
#include "sim/provider/sim_config.h"

namespace bx::sim {

struct NetworkPlan {
  TopologyConfig topology{};
  NicConfig nic{};  // all but the host
};

// Errors: invalid_argument or exhausted, with a detail that names the field and the remedy.
[[nodiscard]] Result<NetworkPlan> plan_network(const SimConfig& config);

// The largest frame that a host of this network sends.
[[nodiscard]] std::uint32_t frame_bytes_max(const SimConfig& config) noexcept;

// The buffer of the switch that host0 is on, if the configuration has a plan.
[[nodiscard]] Result<BufferConfig> buffer_of(const SimConfig& config);

}  // namespace bx::sim
