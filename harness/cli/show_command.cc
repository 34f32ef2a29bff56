// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/cli/commands.h"
#include "harness/report/table.h"
#include "harness/scenario/schema.h"
#include "harness/workload/flows.h"
#include "harness/workload/plan.h"
#include "sim/provider/port_headroom.h"
#include "sim/provider/sim_fabric.h"

namespace bx::harness {
namespace {

using Rows = std::vector<std::vector<std::string>>;
using Json = nlohmann::ordered_json;

std::uint32_t fan_in(const Settings& settings) {
  std::size_t most = 1;
  for (const WorkloadSpec& workload : settings.workloads) {
    most = std::max({most, workload.servers.size(), workload.sources.size()});
  }
  return static_cast<std::uint32_t>(most);
}

// Numbers that follow from the settings before anything runs.
struct Predictions {
  std::uint64_t headroom_needed = 0;
  std::vector<sim::PortHeadroom> headroom;
  std::uint32_t ports = 0;  // that send to one host at once
  std::uint64_t xoff_per_port = 0;
  double bound_ns = 0;              // mean over the measured rounds of all clients
  std::uint64_t largest_round = 0;  // answer bytes
};

Predictions predict(const Settings& settings) {
  Predictions p;
  p.headroom_needed = sim::SimFabric::headroom_needed_bytes(settings.fabric);
  p.headroom = sim::list_port_headroom(settings.fabric);
  p.ports = fan_in(settings);
  p.xoff_per_port = sim::SimFabric::xoff_onset_bytes(settings.fabric, p.ports);
  std::uint64_t rounds = 0;
  const PathModel paths(settings);
  for (const Plan plan = make_plan(settings); const ClientPlan& client : plan.clients) {
    for (const std::uint64_t bound : round_bounds_ps(client, paths)) {
      p.bound_ns += static_cast<double>(bound) / 1000;
      ++rounds;
    }
    for (std::uint32_t round = 0; round < client.rounds; ++round) {
      std::uint64_t bytes = 0;
      for (const CallPlan& call : client.round(client.warm_up_rounds + round)) bytes += call.answer_bytes;
      p.largest_round = std::max(p.largest_round, bytes * client.concurrency);
    }
  }
  p.bound_ns /= static_cast<double>(std::max<std::uint64_t>(1, rounds));
  const std::vector<FlowSpec> flows = plan_flows(settings);
  p.bound_ns = std::max(p.bound_ns, static_cast<double>(flows_bound_ns(flows, paths)));
  std::map<std::uint32_t, std::uint64_t> to_sink;
  for (const FlowSpec& flow : flows) {
    p.largest_round = std::max(p.largest_round, to_sink[flow.sink] += flow.size);
  }
  return p;
}

std::string shown_value(const KeySpec& key, const Settings& settings, std::size_t workload) {
  if (key.of_fault()) return key.get_fault(settings.faults[workload]);
  return key.of_workload() ? key.get_workload(settings.workloads[workload]) : key.get(settings);
}

// Of a key of [[workload]] or [[fault]], the values of all that have it.
std::string shown_values(const KeySpec& key, const Settings& settings) {
  std::vector<std::string> values;
  for (std::size_t i = 0; key.of_workload() && i < settings.workloads.size(); ++i) {
    if (key.is_for(settings.workloads[i].kind)) values.push_back(shown_value(key, settings, i));
  }
  for (std::size_t i = 0; key.of_fault() && i < settings.faults.size(); ++i) {
    values.push_back(shown_value(key, settings, i));
  }
  if (key.of_settings()) values.push_back(key.get(settings));
  return fmt::format("{}", fmt::join(values, ", "));
}

void print_settings(const Settings& settings) {
  Rows rows;
  for (const KeySpec& key : scenario_keys()) {
    if (!key.of_settings()) continue;
    // Knobs that nobody touched are `bx config`'s business.
    const Origin origin = settings.origin(key.name);
    if (key.name.starts_with("library.") && origin == Origin::default_value) continue;
    rows.push_back({"  " + key.name, key.get(settings), std::string(to_string(origin))});
  }
  fmt::print("settings\n{}", align(rows));
  for (std::size_t i = 0; i < settings.workloads.size(); ++i) {
    rows.clear();
    for (const KeySpec& key : scenario_keys()) {
      if (!key.of_workload() || !key.is_for(settings.workloads[i].kind)) continue;
      rows.push_back({"  " + key.name.substr(9), shown_value(key, settings, i)});
    }
    fmt::print("\nworkload {}\n{}", i + 1, align(rows));
  }
}

// Which comes first as one egress queue grows, fed evenly by all senders: marks, or the pause of each.
std::string ecn_against_pfc(const Settings& settings, const Predictions& p) {
  const std::uint64_t queue_at_xoff = p.xoff_per_port * p.ports;
  const sim::EcnMarkingConfig& ecn = settings.fabric.ecn;
  if (ecn.kmax_bytes <= queue_at_xoff) return "marks everything before PFC pauses";
  if (ecn.kmin_bytes < queue_at_xoff)
    return "begins to mark before PFC pauses, and marks everything only after it";
  return "marks nothing before PFC pauses: kmin is above the queue at XOFF";
}

std::uint64_t nanoseconds_of(sim::Picoseconds time) {
  return static_cast<std::uint64_t>(time.count()) / 1000;
}
std::string_view name_of(sim::NodeKind peer) {
  return peer == sim::NodeKind::host ? "host" : "switch";
}

// A line for each kind of port.
void print_headroom(const std::vector<sim::PortHeadroom>& kinds) {
  std::string_view label = "  PFC headroom  ";
  for (const sim::PortHeadroom& kind : kinds) {
    fmt::print("{}{} kept, {} needed: {} port{} to a {} at {}, {} away\n", label,
               format_approximately(static_cast<double>(kind.kept_bytes), "bytes"),
               format_approximately(static_cast<double>(kind.needed_bytes), "bytes"), kind.ports,
               kind.ports == 1 ? "" : "s", name_of(kind.peer),
               format_rate_bps(kind.speed.rate.bits_per_second),
               format_duration_ns(nanoseconds_of(kind.speed.delay)));
    label = "                ";
  }
}

void print_predictions(const Settings& settings) {
  const Predictions p = predict(settings);
  const sim::SimConfig& fabric = settings.fabric;
  const auto bytes = [](std::uint64_t n) { return format_approximately(static_cast<double>(n), "bytes"); };
  fmt::print("  closed form   {} until the last answer of a fetch (mean of the measured ones)\n",
             format_approximately(p.bound_ns, "ns"));
  if (!p.headroom.empty()) {
    print_headroom(p.headroom);
    fmt::print("  PFC onset     {} buffered for each of {} senders, {} in all", bytes(p.xoff_per_port),
               p.ports, bytes(p.xoff_per_port * p.ports));
    fmt::print("\n");
    if (p.largest_round < p.xoff_per_port * p.ports) {
      fmt::print("                the largest fetch has {}: cannot reach XOFF, no pause expected\n",
                 bytes(p.largest_round));
    } else {
      fmt::print("                the largest fetch has {}: reaches XOFF unless its senders are held back\n",
                 bytes(p.largest_round));
    }
  } else {
    fmt::print("  PFC           {}: a full buffer drops\n", fabric.pfc.enabled ? "for no class" : "off");
  }
  if (fabric.ecn.enabled) {
    fmt::print("  ECN           marks from {} of an egress queue, all from {}\n",
               bytes(fabric.ecn.kmin_bytes), bytes(fabric.ecn.kmax_bytes));
    if (!p.headroom.empty()) fmt::print("                {}\n", ecn_against_pfc(settings, p));
  }
  for (const FaultEntry& fault : settings.faults) {
    if (fault.enabled) {
      fmt::print("  fault         {} of {} at {}\n", fault.kind, fault.target,
                 format_duration_ns(fault.at_ns));
    }
  }
}

void print_text(const Scenario& scenario) {
  fmt::print("{}: {}\n{}, {}\n\n", scenario.name, scenario.title, scenario.file, scenario.hash);
  print_settings(scenario.variants.front().settings);
  for (const Variant& variant : scenario.variants) {
    fmt::print("\nvariant {}\n", variant.name);
    for (const auto& [name, by] : variant.settings.set_by) {
      const KeySpec* key = find_key(name);
      if (by.origin == Origin::variant)
        fmt::print("  sets {} = {}\n", name, shown_values(*key, variant.settings));
    }
    print_predictions(variant.settings);
  }
  fmt::print("\nexpectations\n");
  for (const Expectation& expectation : scenario.expectations) {
    std::string scope;
    if (!expectation.variants.empty())
      scope += fmt::format(" (variant {})", fmt::join(expectation.variants, ", "));
    if (!expectation.backends.empty())
      scope += fmt::format(" (backend {})", fmt::join(expectation.backends, ", "));
    fmt::print("  {} {}{}\n", expectation.metric, expectation.condition(), scope);
  }
}

void print_json(const Scenario& scenario) {
  Json json{
      {"name", scenario.name}, {"title", scenario.title}, {"file", scenario.file}, {"hash", scenario.hash}};
  Json& variants = json["variants"] = Json::array();
  for (const Variant& variant : scenario.variants) {
    const Settings& settings = variant.settings;
    Json entry{{"name", variant.name}};
    for (const KeySpec& key : scenario_keys()) {
      if (!key.of_settings()) continue;
      entry["settings"][key.name] = {{"value", key.get(settings)},
                                     {"origin", to_string(settings.origin(key.name))}};
    }
    for (std::size_t i = 0; i < settings.workloads.size(); ++i) {
      Json workload;
      for (const KeySpec& key : scenario_keys()) {
        if (!key.of_workload() || !key.is_for(settings.workloads[i].kind)) continue;
        workload[key.name.substr(9)] = shown_value(key, settings, i);
      }
      entry["workloads"].push_back(workload);
    }
    const Predictions p = predict(settings);
    entry["predictions"] = {{"bound_line_rate_ns", p.bound_ns},
                            {"headroom_needed_bytes", p.headroom_needed},
                            {"senders", p.ports},
                            {"xoff_onset_bytes_per_port", p.xoff_per_port}};
    Json& headroom = entry["predictions"]["headroom"] = Json::array();
    for (const sim::PortHeadroom& kind : p.headroom) {
      headroom.push_back({{"peer", name_of(kind.peer)},
                          {"rate_bps", kind.speed.rate.bits_per_second},
                          {"delay_ns", nanoseconds_of(kind.speed.delay)},
                          {"ports", kind.ports},
                          {"needed_bytes", kind.needed_bytes},
                          {"kept_bytes", kind.kept_bytes}});
    }
    variants.push_back(entry);
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

int show_command(const ShowOptions& options) {
  if (options.schema) fmt::print("{}", scenario_schema());
  if (options.keys) fmt::print("{}", key_documentation());
  if (options.file.empty()) return kExitGood;
  Diagnostics diagnostics;
  const auto overrides = read_override_options(options.overrides, diagnostics);
  const auto scenario = load_scenario(options.file, overrides, diagnostics);
  if (!scenario || !diagnostics.ok()) return usage_error(diagnostics);
  print_warnings(*scenario);
  if (options.json) {
    print_json(*scenario);
  } else {
    print_text(*scenario);
  }
  return kExitGood;
}

}  // namespace bx::harness
