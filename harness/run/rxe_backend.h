// SPDX-License-Identifier: GPL-2.0-only
// A scenario on SoftRoCE: the hosts that scripts/rxe makes, host n of the scenario at 10.77.0.(n+1). All of
// them live in this process and on this thread; the packets between them are the kernel's. Real time: no
// digest, no closed form, and what differs from run to run is the machine's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/run/backend.h"

namespace bx::harness {

inline constexpr std::uint32_t kRxeHostsMax = 64;

// Whether the hosts are there, which is so inside scripts/rxe.
bool inside_rxe();
// Replaces this process by scripts/rxe running the same command line with `hosts` hosts and the folder
// writable. Returns only if that fails: why.
std::string enter_rxe(std::uint32_t hosts, const std::string& writable);

// Errors: unreachable (no hosts), exhausted (more hosts than there are), device.
Result<std::unique_ptr<Backend>> make_rxe_backend(const Settings& settings);

}  // namespace bx::harness
