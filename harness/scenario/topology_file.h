// SPDX-License-Identifier: GPL-2.0-only
// A network drawn by hand: what `fabric.topology_file` names.
//
//   hosts = 3                        # host0 to host2
//   switches = ["left", "right"]
//   rate = "100Gbps"                 # of links that do not say otherwise
//   delay = "1us"                  # likewise; a link must get both from somewhere
//   [[link]]
//   ends = ["host0", "left"]         # or ["host0..1", "left"]: a link each
//   [[link]]
//   ends = ["left", "right"]
//   rate = "400Gbps"
//   count = 2                        # parallel links
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/base/diagnostics.h"
#include "sim/model/topology_plan.h"

namespace bx::harness {

// Ports of a switch are numbered in the order of the links. Mistakes become diagnostics with their place in
// `file`, and give nothing.
std::optional<sim::TopologyPlan> parse_topology(std::string_view text, const std::string& file,
                                                Diagnostics& diagnostics);
std::optional<sim::TopologyPlan> load_topology(const std::string& file, Diagnostics& diagnostics);

// `name` as seen from the folder of the scenario `file`.
std::string beside(const std::string& file, const std::string& name);

}  // namespace bx::harness
