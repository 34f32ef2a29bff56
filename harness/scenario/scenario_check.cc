// SPDX-License-Identifier: GPL-2.0-only
// check_variant() of scenario.h: rules that involve more than one key.
#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/fabric_fault.h"
#include "harness/scenario/scenario.h"
#include "libbx/base/path_mtu.h"
#include "sim/provider/sim_fabric.h"
#include "sim/provider/topology_spec.h"

namespace bx::harness {
namespace {

// A plan is kept in memory, some tens of bytes a call.
constexpr std::uint64_t kCallsPlannedMax = 5'000'000;
constexpr std::uint64_t kFlowsMax = 30'000;  // a NIC has 65536 queues of a kind

class Checker {
 public:
  Checker(const Variant& variant, const std::string& file, Diagnostics& diagnostics)
      : variant_(variant), settings_(variant.settings), file_(file), diagnostics_(diagnostics) {}

  void check() {
    check_fabric();
    if (errors_ == 0) check_network();
    for (std::size_t i = 0; i < settings_.workloads.size(); ++i) check_workload(settings_.workloads[i], i);
    check_traffic_class("library.path.traffic_class", {}, settings_.library.path_traffic_class);
    check_faults();
  }

 private:
  // At the place where `key` was set, or at `otherwise` if nobody set it.
  void wrong(std::string_view key, Place otherwise, std::string message) {
    ++errors_;
    const auto set = settings_.set_by.find(key);
    if (set == settings_.set_by.end()) return diagnostics_.error(file_, otherwise, std::move(message));
    diagnostics_.error(set->second.source, set->second.place, std::move(message));
  }

  void check_fabric() {
    const sim::SimConfig& fabric = settings_.fabric;
    if (!is_path_mtu(fabric.mtu)) {
      wrong("fabric.mtu", {},
            fmt::format("'fabric.mtu' = {} is not a path MTU; allowed: 256, 512, 1024, 2048, 4096",
                        fabric.mtu));
      return;  // the predictions below need it
    }
    if (fabric.ecn.kmin_bytes > fabric.ecn.kmax_bytes) {
      wrong("fabric.ecn.kmin", {},
            fmt::format("'fabric.ecn.kmin' = {} is above 'fabric.ecn.kmax' = {}",
                        format_bytes(fabric.ecn.kmin_bytes), format_bytes(fabric.ecn.kmax_bytes)));
    }
    const std::uint64_t needed = sim::SimFabric::headroom_needed_bytes(fabric);
    const std::uint64_t headroom = fabric.pfc.headroom_bytes;
    if (fabric.pfc.enabled && headroom != 0 && headroom < needed) {
      wrong("fabric.pfc.headroom", {},
            fmt::format(
                "'fabric.pfc.headroom' = {} ({} bytes) is too small: after a pause {} bytes can still arrive "
                "at {} over {} with MTU {}, and a lossless class would drop; write 'auto' or at least '{}B'",
                format_bytes(headroom), headroom, needed, format_rate_bps(fabric.rate_bps),
                format_duration_ns(fabric.delay_ns), fabric.mtu, needed));
    }
  }

  // What is not said above, the network itself says.
  void check_network() {
    if (const auto fault = find_fabric_fault(settings_)) wrong(fault->key, {}, fault->sentence);
  }

  void check_hosts(const WorkloadSpec& workload, std::string_view key, const HostList& hosts) {
    if (hosts.empty() || hosts.back() < settings_.fabric.hosts) return;
    wrong(key, workload.place,
          fmt::format("'{}' = '{}' names host {}, but 'fabric.hosts' = {}: there are host0 to host{}", key,
                      format_hosts(hosts), hosts.back(), settings_.fabric.hosts, settings_.fabric.hosts - 1));
  }

  // RFC 2474 and 3168: six bits of DSCP and two of ECN. The NIC sets the latter, as RoCEv2 (IBA 1.4, annex
  // A17) has it; a sender that writes "congestion experienced" by hand would be a fault, not a class.
  void check_traffic_class(std::string_view key, Place otherwise, std::uint64_t value) {
    constexpr std::uint64_t kEcnBits = 3;
    if ((value & kEcnBits) == 0) return;
    wrong(key, otherwise,
          fmt::format("'{}' = {} sets ECN bits, which are the NIC's; the DSCP alone is {}", key, value,
                      value & ~kEcnBits));
  }

  void check_flows(const WorkloadSpec& workload, std::size_t index) {
    if (workload.traffic_class) {
      check_traffic_class("workload.traffic_class", workload.place, *workload.traffic_class);
    }
    check_hosts(workload, "workload.sources", workload.sources);
    check_hosts(workload, "workload.sinks", workload.sinks);
    const auto both = std::ranges::find_first_of(workload.sources, workload.sinks);
    if (both != workload.sources.end()) {
      wrong("workload.sources", workload.place,
            fmt::format("host {} is both a source and a sink of [[workload]] number {}", *both, index + 1));
    }
    const std::uint64_t flows = workload.sources.size() * workload.sinks.size();
    if (flows > kFlowsMax) {
      wrong("workload.sources", workload.place,
            fmt::format("[[workload]] number {} has {} flows; the limit is {}", index + 1, flows, kFlowsMax));
    }
  }

  void check_workload(const WorkloadSpec& workload, std::size_t index) {
    if (workload.is_flows()) return check_flows(workload, index);
    if (workload.servers.empty() || workload.clients.empty()) return;  // said already: a required key
    check_hosts(workload, "workload.servers", workload.servers);
    check_hosts(workload, "workload.clients", workload.clients);
    const auto both = std::ranges::find_first_of(workload.clients, workload.servers);
    if (both != workload.clients.end()) {
      wrong("workload.clients", workload.place,
            fmt::format("host {} is both a client and a server of [[workload]] number {}", *both, index + 1));
    }
    if (workload.workload_kind() == WorkloadKind::incast && workload.clients.size() != 1) {
      wrong("workload.clients", workload.place,
            fmt::format(
                "'workload.clients' = '{}' are {} hosts, but an incast has one client; use kind = 'ps-fetch'",
                format_hosts(workload.clients), workload.clients.size()));
    }
    check_service(workload, index);
    const std::uint64_t fan_out = workload.workload_kind() == WorkloadKind::rpc ? 1 : workload.servers.size();
    const std::uint64_t planned = (workload.calls + workload.warm_up) * fan_out * workload.clients.size();
    if (planned > kCallsPlannedMax) {
      wrong("workload.calls", workload.place,
            fmt::format("[[workload]] number {} plans {} calls; the limit is {}", index + 1, planned,
                        kCallsPlannedMax));
    }
  }

  // A service that is called must be another workload's own, at every server.
  void check_service(const WorkloadSpec& workload, std::size_t index) {
    if (workload.service == 0) return;
    const std::string named =
        fmt::format("'workload.service' = {} of [[workload]] number {}", workload.service, index + 1);
    if (workload.service > settings_.workloads.size() || workload.service == index + 1) {
      return wrong(
          "workload.service", workload.place,
          fmt::format("{} is not another workload; there are {}", named, settings_.workloads.size()));
    }
    const WorkloadSpec& owner = settings_.workloads[workload.service - 1];
    if (owner.is_flows() || owner.service != 0) {
      return wrong("workload.service", workload.place,
                   fmt::format("{} has no service of its own; name one that has", named));
    }
    if (!std::ranges::includes(owner.servers, workload.servers)) {
      wrong("workload.service", workload.place,
            fmt::format("{} is not served on all of hosts {}; its servers are {}", named,
                        format_hosts(workload.servers), format_hosts(owner.servers)));
    }
  }

  // What a fault is done to must be there, so the network must be one that can be.
  void check_faults() {
    if (settings_.faults.empty()) return;
    const Result<sim::TopologyPlan> plan = sim::plan_topology(settings_.fabric);
    if (!plan) return;  // the run says why
    for (const FaultEntry& fault : settings_.faults) {
      if (fault.kind.empty() || fault.target.empty()) continue;  // said already: required keys
      if (const FaultError error = find_error(fault, *plan); !error.sentence.empty()) {
        wrong(fault, error.key, "fault." + error.sentence);
      } else if (const std::string why = why_not_killed(fault); !why.empty()) {
        wrong(fault, "target", why);
      }
    }
  }

  // At the place of the fault's key, or of the fault.
  void wrong(const FaultEntry& fault, std::string_view key, std::string message) {
    const auto given = fault.given.find(key);
    const bool placed = given != fault.given.end() && given->second.line != 0;
    diagnostics_.error(file_, placed ? given->second : fault.place, std::move(message));
  }

  // The harness can take a server's process away and bring it back; a client's is the harness's own.
  [[nodiscard]] std::string why_not_killed(const FaultEntry& fault) const {
    if (fault.kind != "process-kill" && fault.kind != "host-crash") return {};
    const std::uint32_t host = find_host(fault.target);
    for (const WorkloadSpec& workload : settings_.workloads) {
      if (std::ranges::count(workload.clients, host) == 0) continue;
      return fmt::format("fault.target = '{}' calls: {} is done to hosts that only serve", fault.target,
                         fault.kind);
    }
    return {};
  }
  static std::uint32_t find_host(std::string_view target) {
    const Parsed<std::uint64_t> number = parse_count(target.substr(std::string_view("host").size()));
    return number ? static_cast<std::uint32_t>(*number) : 0;
  }

  const Variant& variant_;
  const Settings& settings_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::size_t errors_ = 0;  // of this variant, whether or not another one has the same
};

}  // namespace

void check_variant(const Variant& variant, const std::string& file, Diagnostics& diagnostics) {
  Checker(variant, file, diagnostics).check();
}

}  // namespace bx::harness
