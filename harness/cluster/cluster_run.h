// SPDX-License-Identifier: GPL-2.0-only
// Runs one variant of a scenario with a process for each host, and makes one VariantResult of what they
// report. What the in-process run (harness/run/variant_run.h) does with one world is done here with many:
// phases, faults, series, the oracle over the calls as both ends saw them, expectations.
#pragma once

#include <functional>
#include <string>

#include "harness/cluster/coordinator.h"
#include "harness/run/link_faults.h"
#include "harness/run/variant_run.h"

namespace bx::harness {

// Who the hosts of a run are and how their processes are started.
struct ClusterHosts {
  CoordinatorConfig coordinator{};
  std::vector<native::HostEntry> entries{};  // of the fabric, by number of the scenario's hosts
  std::string agent_backend = "verbs";       // see AgentSetup
  Launcher launch{};
  std::function<std::string(std::uint32_t host)> device{};  // none: whichever has the address
  // Which hosts each process plays; none: its own. For tests without devices.
  std::function<HostList(std::uint32_t host)> plays{};
  HostList processes{};  // none: one for each host that a workload names
};

// The hosts of scripts/rxe, or those of a hosts file. The error is a sentence, or diagnostics of the file.
Parsed<ClusterHosts> rxe_hosts(const Settings& settings);
Parsed<ClusterHosts> listed_hosts(const std::string& file, const Settings& settings);

// `choice.kind` is rxe or verbs.
VariantResult run_on_cluster(const Scenario& scenario, const Variant& variant, const BackendChoice& choice,
                             RunObserver& observer);
// On hosts that are given, without shaping links.
VariantResult run_on_hosts(const Scenario& scenario, const Variant& variant, BackendKind kind,
                           ClusterHosts hosts, RunObserver& observer);

}  // namespace bx::harness
