// SPDX-License-Identifier: GPL-2.0-only
// Settings from outside the scenario. Who wins, weakest first:
//
//   default < scenario file < knob file < environment < --set (and --seed) < the variant's own keys
//
// A knob file and the environment hold knobs of the library; --set holds any key. They come after the
// scenario because they are the more explicit wish of whoever runs it; a variant comes last because what
// distinguishes the variants is the experiment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/scenario/assignment.h"

namespace bx::harness {

struct OverrideSources {
  std::string knob_file;          // empty: none
  bool environment = true;        // BX_WINDOW_PER_PEER and so on
  std::vector<std::string> sets;  // "key=value", in the order given
  std::optional<std::uint64_t> seed;
};

// The assignments, weakest first. Mistakes become diagnostics. An environment variable that begins with BX_
// and is no knob may belong to another program: it gives a warning only.
std::vector<Assignment> read_overrides(const OverrideSources& sources, Diagnostics& diagnostics,
                                       std::vector<std::string>& warnings);

// "window.per_peer" is set by BX_WINDOW_PER_PEER.
std::string environment_name(std::string_view knob);

}  // namespace bx::harness
