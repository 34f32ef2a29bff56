// SPDX-License-Identifier: GPL-2.0-only
// One [[fault]] of a scenario, as written. What each kind may be done to and which keys it takes stands in
// sim/model/fault_plan.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/base/diagnostics.h"
#include "sim/model/fault_plan.h"
#include "sim/model/topology_plan.h"

namespace bx::harness {

struct FaultEntry {
  std::string kind;
  std::string target;
  bool enabled = true;
  std::uint64_t at_ns = 0;
  std::uint64_t duration_ns = 0;  // 0: for ever
  std::string direction = "both";
  double probability = 1;
  std::uint64_t psn = 0;
  std::uint64_t iteration = 1;
  std::string packets = "requests";
  std::uint64_t delay_ns = 0;
  std::uint64_t period_ns = 0;
  std::uint64_t count = 1;
  std::uint64_t rate_bps = 0;
  std::uint64_t priority = 3;
  Place place;                                      // of the [[fault]] line
  std::map<std::string, Place, std::less<>> given;  // by key: "duration"

  [[nodiscard]] sim::FaultSpec spec() const;
};

// The names of all kinds, each once.
std::vector<std::string> fault_kind_names();

// What is wrong with a fault on this network: a sentence, and the key it is about. Empty: nothing.
struct FaultError {
  std::string key;
  std::string sentence;
};
FaultError find_error(const FaultEntry& fault, const sim::TopologyPlan& plan);

// The table of kinds in Markdown.
std::string fault_documentation();

}  // namespace bx::harness
