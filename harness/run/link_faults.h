// SPDX-License-Identifier: GPL-2.0-only
// The faults of a scenario where each host is a process and, on SoftRoCE, its link is a pair of interfaces:
// what has to be done when, as values. A link goes down at the bridge's port of the host, so that the host's
// own interface loses its carrier, as with a cut cable; losses are netem's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/run/backend.h"
#include "harness/run/link_shaping.h"

namespace bx::harness {

// Why the scenario's faults cannot be brought about on rxe or verbs; empty if they can.
std::string why_no_cluster_faults(BackendKind kind, const Settings& settings);

enum class FaultDeed : std::uint8_t { cut_link, mend_link, impair, repair, kill, restart };

struct FaultStep {
  std::uint64_t at_ns = 0;  // from the beginning of the measured part
  std::size_t fault = 0;    // index in Settings::faults
  std::uint32_t host = 0;
  FaultDeed deed = FaultDeed::kill;
  bool first = false;  // the fault begins with it
  bool last = false;   // the fault is over with it
};

// In the order of time, and of the scenario at the same time.
std::vector<FaultStep> plan_fault_steps(const Settings& settings);

// The links as the faults leave them.
class LinkFaults {
 public:
  LinkFaults(const Settings& settings, LinkShape shape) : settings_(settings), shape_(shape) {}

  // Lines for "ip -batch" (cut_link, mend_link) or "tc -batch" (impair, repair); kill and restart have none.
  [[nodiscard]] std::string lines_for(const FaultStep& step);
  // Does the step. Errors: what the command said.
  Parsed<void> apply(const FaultStep& step);
  // Every link up and as its shape says. Errors: what the command said.
  Parsed<void> restore();
  // Packets that the faults of index `fault` have made the links drop, those of others on the same side
  // included.
  [[nodiscard]] std::uint64_t drops(std::size_t fault) const;

 private:
  [[nodiscard]] std::vector<std::string> devices_of(std::size_t fault) const;

  const Settings& settings_;
  LinkShape shape_;
  std::map<std::string, Impairment> impairments_;      // by device
  std::set<std::uint32_t> cut_;                        // hosts
  std::map<std::size_t, std::uint64_t> drops_before_;  // by fault
};

// "host3" is 3; nothing if it is another kind of target.
Parsed<std::uint32_t> host_of_target(const std::string& target);

}  // namespace bx::harness
