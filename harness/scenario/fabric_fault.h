// SPDX-License-Identifier: GPL-2.0-only
// What the simulated network says of a configuration that it cannot be, told in keys of the scenario: which
// key is to blame, what it is, and a value that would do where one can be searched for.
#pragma once

#include <optional>
#include <string>

#include "harness/scenario/settings.h"

namespace bx::harness {

struct FabricFault {
  std::string key;       // "fabric.hosts"
  std::string sentence;  // "'fabric.hosts' = 10 with 'fabric.leaves' = 4: give a multiple of the leaves; ..."
};

// Nothing: the network can be built. Faults of [[fault]] are not looked at.
std::optional<FabricFault> find_fabric_fault(const Settings& settings);

}  // namespace bx::harness
