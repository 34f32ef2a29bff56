// SPDX-License-Identifier: GPL-2.0-only
// Everything that one variant of a scenario sets, resolved: defaults, file, knob file, environment, --set and
// the variant's own overrides applied in that order.
#pragma once

#include <bx/config.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/diagnostics.h"
#include "harness/base/units.h"
#include "harness/scenario/fault_spec.h"
#include "harness/scenario/size_mix.h"
#include "sim/provider/sim_config.h"

namespace bx::harness {

// Who set a key, weakest first: a later one wins. What distinguishes the variants is the experiment, so it
// wins over everything.
enum class Origin : std::uint8_t {
  default_value,
  workload,  // sized by the harness for what the workload needs, because nobody set it
  scenario,
  knob_file,
  environment,
  command_line,
  variant,
};
std::string_view to_string(Origin origin) noexcept;

enum class WorkloadKind : std::uint8_t {
  ps_fetch,  // each client calls all servers at once, round after round
  incast,    // the same with exactly one client
  rpc,       // each client calls one server after the other
  flows,     // each source writes to each sink, without the library
};
std::string_view to_string(WorkloadKind kind) noexcept;

struct WorkloadSpec {
  std::string kind;  // as written; checked by the key table, see workload_kind()
  HostList servers;
  HostList clients;
  SizeMix request = SizeMix::fixed(64);
  SizeMix answer = SizeMix::fixed(0);
  std::uint64_t calls = 1;        // ps-fetch and incast: rounds of each client; rpc: calls of each client
  std::uint64_t warm_up = 0;      // the same before measuring begins
  std::uint64_t concurrency = 1;  // rounds (rpc: calls) of one client under way at once
  std::uint64_t think_time_ns = 0;
  std::uint64_t sessions = 1;  // of a client to each server, used in turn
  std::uint64_t service = 0;   // of which [[workload]], counted from 1; 0: its own
  HostList sources;            // of flows, which have nothing of the above
  HostList sinks;
  std::uint64_t size = 0;                     // bytes of each flow
  std::uint64_t message = 64 * 1024;          // bytes of each WRITE
  std::optional<std::uint8_t> traffic_class;  // none: the library's
  Place place;                                // of the [[workload]] line, or nowhere

  [[nodiscard]] bool is_flows() const { return kind == "flows"; }
  [[nodiscard]] WorkloadKind workload_kind() const;
};

struct MeasureSpec {
  std::uint64_t series_interval_ns = 0;  // 0: chosen so that the run gives some hundred samples
  std::uint64_t hang_ns = 0;             // without progress; 0: see hang_window_ns()
  std::uint64_t limit_ns = 0;  // simulated time at which a run is given up; 0: chosen from the closed form
};

// Where the value in force came from.
struct SetBy {
  Origin origin = Origin::default_value;
  std::string source;  // a file, "--set" or the name of an environment variable
  Place place;
};

struct Settings {
  sim::SimConfig fabric{};
  std::string topology_file = "none";             // beside the scenario
  std::string host_file = "none";                 // likewise; what it says is in `fabric` already
  std::uint64_t copy_rate_bps = 100'000'000'000;  // of fabric.cpu.copy_ps_byte, as people write it
  std::string transport = "rdma";
  Config library{};
  MeasureSpec measure{};
  std::vector<WorkloadSpec> workloads;
  std::vector<FaultEntry> faults;
  // By full key, only what somebody set.
  std::map<std::string, SetBy, std::less<>> set_by;

  [[nodiscard]] Origin origin(std::string_view key) const;
};

}  // namespace bx::harness
