// SPDX-License-Identifier: GPL-2.0-only
// What a seed stands for: the hosts of a swarm, their limits, the network and its faults. Everything is drawn
// from the seed, so the seed and the two options are the whole of it.
#pragma once

#include <bx/config.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/fabric/fault_plan.h"
#include "libbx/providers/loopback/loopback_config.h"
#include "sim/provider/sim_config.h"

namespace bx::harness {

enum class SwarmBackend : std::uint8_t { loopback, sim };
// Honest: nothing is lost, no lane may fail. Faulty: completions fail, queue pairs break, creation is
// refused, hosts vanish and return; on sim the links lose packets and go down too. Drawn: the seed decides.
enum class SwarmMode : std::uint8_t { drawn, honest, faulty };
// A fault that is put in on purpose, to see that the checkers find it.
enum class SwarmSabotage : std::uint8_t { none, bytes, memory, silence, check, digest };

struct SwarmOptions {
  SwarmBackend backend = SwarmBackend::loopback;
  SwarmMode mode = SwarmMode::drawn;
  SwarmSabotage sabotage = SwarmSabotage::none;
};

struct SwarmPlan {
  std::uint64_t seed = 0;
  SwarmOptions options;  // the mode is not `drawn` any more
  std::vector<Config> hosts;
  loopback::LoopbackConfig loopback;
  sim::SimConfig sim;
  fabric::FaultPlan faults;

  [[nodiscard]] bool honest() const noexcept { return options.mode == SwarmMode::honest; }
};

SwarmPlan plan_swarm(std::uint64_t seed, const SwarmOptions& options);
// The plan for a person, a line for the network and one for each host with the knobs that are not default.
std::string describe(const SwarmPlan& plan);

std::string_view to_string(SwarmBackend backend) noexcept;
std::string_view to_string(SwarmMode mode) noexcept;
std::string_view to_string(SwarmSabotage sabotage) noexcept;

}  // namespace bx::harness
