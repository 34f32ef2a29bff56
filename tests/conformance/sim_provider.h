// SPDX-License-Identifier: GPL-2.0-only
// The simulated network as a provider of the conformance suite: hosts "host0" and "host1" on one switch.
#pragma once

#include <cstdint>
#include <memory>

#include "libbx/fabric/fabric.h"

namespace bx::conformance {

std::unique_ptr<fabric::Fabric> make_sim(std::uint64_t seed);

}  // namespace bx::conformance
