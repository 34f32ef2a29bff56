// SPDX-License-Identifier: GPL-2.0-only
// What a machine costs, as `bx perf verbs --calibrate` measured it: a TOML file of keys of scenarios that a
// scenario includes by `fabric.host_file`. Only keys about hosts may stand in it.
#pragma once

#include <string>
#include <vector>

#include "harness/scenario/assignment.h"

namespace bx::harness {

// The file's assignments; mistakes become diagnostics.
std::vector<Assignment> load_host_file(const std::string& path, Diagnostics& diagnostics);

}  // namespace bx::harness
