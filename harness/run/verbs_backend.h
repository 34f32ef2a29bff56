// SPDX-License-Identifier: GPL-2.0-only
// RDMA devices through libibverbs, as a world to run scenarios in: real time, the counters of the devices,
// and no look into the network between them.
#pragma once

#include <memory>
#include <vector>

#include "harness/run/backend.h"
#include "harness/run/device_counters.h"
#include "libbx/providers/verbs/verbs_fabric.h"

namespace bx::harness {

// `ports` are those whose counters are reported. Errors: exhausted (file descriptors).
Result<std::unique_ptr<Backend>> make_verbs_backend(const verbs::VerbsConfig& config,
                                                    std::vector<CountedPort> ports);

}  // namespace bx::harness
