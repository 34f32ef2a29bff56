// SPDX-License-Identifier: GPL-2.0-only
// A scenario on SoftRoCE: the hosts that scripts/rxe makes, host n of the scenario at 10.77.0.(n+1). Each is
// played by a process (harness/cluster); only flows, which need both ends, are played in this one. The
// packets are the kernel's. Real time: no digest, no closed form, and what differs from run to run is the
// machine's.
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

std::string rxe_address(std::uint32_t host);
// Makes the links what the scenario says, where they can be. Why not, or nothing.
std::string shape_rxe_links(const Settings& settings);

// All hosts in this process. Errors: device (no hosts, too few, or their links cannot be shaped).
Result<std::unique_ptr<Backend>> make_rxe_backend(const Settings& settings);

}  // namespace bx::harness
