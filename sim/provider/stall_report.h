// SPDX-License-Identifier: GPL-2.0-only
// Who waits for what in a simulated network: for the report of a run that hangs or does not end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/provider/sim_network.h"

namespace bx::sim {

// Grows whenever the network gets anything done: payload accepted, a timeout spent, a work request completed,
// a frame sent that is no refresh of a pause.
[[nodiscard]] std::uint64_t network_progress(const SimNetwork& network) noexcept;

// Pauses, then the queue pairs that have something outstanding.
[[nodiscard]] std::vector<std::string> describe_stall(const SimNetwork& network);

}  // namespace bx::sim
