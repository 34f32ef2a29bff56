// SPDX-License-Identifier: BSD-3-Clause
// Before anything is mapped or registered: do the memory knobs add up, and do the device and the operating
// system allow what they ask for? An Error's `sys` is the number that would fit, in MiB where bytes are
// meant.
#pragma once

#include <bx/config.h>
#include <bx/preflight.h>

#include <cstdint>

#include "libbx/fabric/types.h"
#include "libbx/memory/arena.h"

namespace bx::memory {

struct MemoryPlan {
  ArenaConfig arena;
  std::uint64_t user_bytes = 0;
  std::uint32_t user_regions = 0;
};

// The quotas that a config means. `receive_min` is what the receive side cannot do without: the slots and
// headers of one peer. Errors: invalid_argument (knobs that contradict each other; detail names one).
Result<MemoryPlan> plan_memory(const Config& config, std::uint64_t receive_min,
                               const fabric::DeviceCaps& caps);

// Errors come first. Counts this worker alone: others of the process, or of the user, add to what is locked.
Findings check_limits(const MemoryPlan& plan, const fabric::DeviceCaps& caps, const SystemMemory& system);

}  // namespace bx::memory
