// SPDX-License-Identifier: GPL-2.0-only
// Keys that a scenario sets and that change nothing: their condition (KeySpec::needs) does not hold. Not
// errors, because a base may set what only some variants use, and --set may try things; but never silent.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/scenario.h"

namespace bx::harness {

// A line each, in the order of the keys: "file:line:col: warning: 'fabric.dscp_map' has no effect: it needs
// fabric.trust = dscp". What the file or --set sets for all variants must be idle in each of them; what a
// variant sets itself counts there. Knob files and the environment are for any scenario, and not looked at.
std::vector<std::string> list_idle_keys(const std::vector<Variant>& variants);

}  // namespace bx::harness
