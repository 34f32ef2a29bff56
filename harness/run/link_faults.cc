// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/link_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace bx::harness {
namespace {

constexpr std::array<std::string_view, 7> kOnLinks{"link-down", "link-flap",    "loss",      "corrupt",
                                                   "delay",     "process-kill", "host-crash"};
constexpr std::string_view kHostTarget = "host";

bool is_process_fault(std::string_view kind) {
  return kind == "process-kill" || kind == "host-crash";
}
bool is_impairment(std::string_view kind) {
  return kind == "loss" || kind == "corrupt" || kind == "delay";
}

void add_steps(const FaultEntry& fault, std::size_t index, std::uint32_t host,
               std::vector<FaultStep>& steps) {
  const auto add = [&](std::uint64_t at, FaultDeed deed) {
    steps.push_back({.at_ns = at, .fault = index, .host = host, .deed = deed});
  };
  const std::size_t begin = steps.size();
  const bool ends = fault.duration_ns != 0;
  if (fault.kind == "link-flap") {
    for (std::uint64_t i = 0; i < fault.count; ++i) {
      add(fault.at_ns + i * fault.period_ns, FaultDeed::cut_link);
      add(fault.at_ns + i * fault.period_ns + fault.duration_ns, FaultDeed::mend_link);
    }
  } else {
    const std::uint64_t end = fault.at_ns + fault.duration_ns;
    // The cable first, so that a host that crashes says no farewell.
    if (fault.kind == "link-down" || fault.kind == "host-crash") {
      add(fault.at_ns, FaultDeed::cut_link);
      if (ends) add(end, FaultDeed::mend_link);
    }
    if (is_process_fault(fault.kind)) {
      add(fault.at_ns, FaultDeed::kill);
      if (ends) add(end, FaultDeed::restart);
    }
    if (is_impairment(fault.kind)) {
      add(fault.at_ns, FaultDeed::impair);
      if (ends) add(end, FaultDeed::repair);
    }
  }
  steps[begin].first = true;
  const FaultDeed last = steps.back().deed;
  steps.back().last = last == FaultDeed::mend_link || last == FaultDeed::repair || last == FaultDeed::restart;
}

}  // namespace

Parsed<std::uint32_t> host_of_target(const std::string& target) {
  if (!target.starts_with(kHostTarget)) return tl::unexpected(std::string("is no host"));
  const Parsed<std::uint64_t> number = parse_count(std::string_view(target).substr(kHostTarget.size()));
  if (!number || *number > kHostNumberMax) return tl::unexpected(std::string("is no host"));
  return static_cast<std::uint32_t>(*number);
}

std::string why_no_cluster_faults(BackendKind kind, const Settings& settings) {
  for (std::size_t i = 0; i < settings.faults.size(); ++i) {
    const FaultEntry& fault = settings.faults[i];
    if (!fault.enabled) continue;
    std::string why;
    if (std::ranges::find(kOnLinks, fault.kind) == kOnLinks.end()) {
      why = "this kind can be brought about in a simulated network only";
    } else if (!host_of_target(fault.target)) {
      why = "only a host and its link can be the target here: 'host3'";
    } else if (fault.given.contains("psn")) {
      why = "single packets are not seen here";
    } else if (fault.kind == "delay" && fault.given.contains("probability")) {
      why = "here a delay is of every packet";
    } else if (kind == BackendKind::verbs && fault.kind != "process-kill") {
      why = "the links of real hosts are not ours to break: only process-kill can be";
    }
    if (why.empty()) continue;
    return fmt::format(
        "backend {} cannot bring about [[fault]] number {} ({} of {}): {}; run it on sim, or with --set "
        "fault.enabled=false",
        to_string(kind), i + 1, fault.kind, fault.target, why);
  }
  return {};
}

std::vector<FaultStep> plan_fault_steps(const Settings& settings) {
  std::vector<FaultStep> steps;
  for (std::size_t i = 0; i < settings.faults.size(); ++i) {
    const FaultEntry& fault = settings.faults[i];
    const Parsed<std::uint32_t> host = host_of_target(fault.target);
    if (fault.enabled && host) add_steps(fault, i, *host, steps);
  }
  std::ranges::stable_sort(steps, {}, &FaultStep::at_ns);
  return steps;
}

// What the host sends is shaped where it leaves its interface, what it receives where it leaves the bridge.
std::vector<std::string> LinkFaults::devices_of(std::size_t fault) const {
  const FaultEntry& entry = settings_.faults[fault];
  const std::uint32_t number = *host_of_target(entry.target) + 1;
  std::vector<std::string> devices;
  if (entry.direction != "received") devices.push_back(fmt::format("h{}", number));
  if (entry.direction != "sent") devices.push_back(fmt::format("p{}", number));
  return devices;
}

std::string LinkFaults::lines_for(const FaultStep& step) {
  const FaultEntry& fault = settings_.faults[step.fault];
  switch (step.deed) {
    case FaultDeed::cut_link:
      return fmt::format("link set p{} down\n", step.host + 1);
    case FaultDeed::mend_link:
      return fmt::format("link set p{} up\n", step.host + 1);
    case FaultDeed::impair:
    case FaultDeed::repair: {
      const bool begins = step.deed == FaultDeed::impair;
      std::string lines;
      for (const std::string& device : devices_of(step.fault)) {
        Impairment& impairment = impairments_[device];
        if (fault.kind == "loss") impairment.loss = begins ? fault.probability : 0;
        if (fault.kind == "corrupt") impairment.corruption = begins ? fault.probability : 0;
        if (fault.kind == "delay") impairment.delay_ns = begins ? fault.delay_ns : 0;
        lines += impairment_line(shape_, device, impairment);
      }
      return lines;
    }
    case FaultDeed::kill:
    case FaultDeed::restart:
      return {};
  }
  return {};
}

Parsed<void> LinkFaults::apply(const FaultStep& step) {
  if (step.deed == FaultDeed::impair) {
    std::uint64_t& before = drops_before_[step.fault];
    for (const std::string& device : devices_of(step.fault)) before += dropped_packets(device);
  }
  const std::string lines = lines_for(step);
  if (lines.empty()) return {};
  if (step.deed == FaultDeed::cut_link) cut_.insert(step.host);
  if (step.deed == FaultDeed::mend_link) cut_.erase(step.host);
  const bool link = step.deed == FaultDeed::cut_link || step.deed == FaultDeed::mend_link;
  return run_batch(link ? "ip -batch -" : "tc -batch -", lines);
}

Parsed<void> LinkFaults::restore() {
  std::string ip;
  for (const std::uint32_t host : cut_) ip += fmt::format("link set p{} up\n", host + 1);
  std::string tc;
  for (const auto& [device, impairment] : impairments_) tc += impairment_line(shape_, device, {});
  cut_.clear();
  impairments_.clear();
  if (!ip.empty()) {
    if (Parsed<void> done = run_batch("ip -batch -", ip); !done) return done;
  }
  return tc.empty() ? Parsed<void>() : run_batch("tc -batch -", tc);
}

std::uint64_t LinkFaults::drops(std::size_t fault) const {
  const auto before = drops_before_.find(fault);
  if (before == drops_before_.end()) return 0;
  std::uint64_t now = 0;
  for (const std::string& device : devices_of(fault)) now += dropped_packets(device);
  return now - std::min(now, before->second);
}

}  // namespace bx::harness
