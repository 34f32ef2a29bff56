// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/fault_plan.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace bx::sim {
namespace {

using namespace fault_field;
using fault_target::kHost;
using fault_target::kPort;
using fault_target::kQueue;
using fault_target::kWire;

constexpr std::uint16_t kWhere = kDuration | kDirection;
constexpr std::uint16_t kWhich = kIteration | kPackets;

constexpr std::array kForms{
    FaultForm{FaultKind::link_down, "link-down", kWire, 0, kWhere,
              "The link is cut, in one direction or both; routes follow after fabric.reroute_delay."},
    FaultForm{FaultKind::link_flap, "link-flap", kWire, kDuration | kPeriod | kCount, kDirection,
              "The link is cut `count` times, each for `duration`, one `period` apart."},
    FaultForm{FaultKind::loss, "loss", kWire, kProbability, kWhere, "Packets are lost; PFC frames are not."},
    FaultForm{FaultKind::drop, "drop", kQueue, kPsn, kWhich, "One packet is lost."},
    FaultForm{FaultKind::corrupt, "corrupt", kWire, kProbability, kWhere,
              "Packets fail the check of their ICRC at the host they are for."},
    FaultForm{FaultKind::corrupt, "corrupt", kQueue, kPsn, kWhich, "One packet, likewise."},
    FaultForm{FaultKind::reorder, "reorder", kWire, kProbability, kWhere | kDelay,
              "Packets come late by `delay` and are overtaken; without `delay`, by two full packets."},
    FaultForm{FaultKind::reorder, "reorder", kQueue, kPsn, kWhich | kDelay, "One packet, likewise."},
    FaultForm{FaultKind::delay, "delay", kWire, kDelay, kWhere | kProbability,
              "Packets come late by `delay`, and so does what follows: nothing is overtaken."},
    FaultForm{FaultKind::delay, "delay", kQueue, kPsn | kDelay, kWhich, "One packet, likewise."},
    FaultForm{FaultKind::ecn_mark, "ecn-mark", kWire, kProbability, kWhere,
              "Packets that can be marked are, as if a queue were full."},
    FaultForm{FaultKind::ecn_mark, "ecn-mark", kQueue, kPsn, kWhich, "One packet, likewise."},
    FaultForm{
        FaultKind::black_hole, "black-hole", kHost | kPort, 0, kDuration,
        "What a switch sends by the port, or to the host, vanishes; the link stays up, PFC frames pass."},
    FaultForm{FaultKind::cnp_loss, "cnp-loss", kWire, 0, kWhere | kProbability,
              "Congestion notifications are lost."},
    FaultForm{FaultKind::pause_loss, "pause-loss", kWire, 0, kWhere | kProbability, "PFC frames are lost."},
    FaultForm{FaultKind::pause_storm, "pause-storm", kHost, 0, kDuration | kPriority,
              "The NIC pauses `priority` (3) of its switch port without end."},
    FaultForm{FaultKind::slow_receiver, "slow-receiver", kHost, kRate, kDuration,
              "The NIC writes to memory at `rate` only, and pauses its switch port when its buffer fills."},
    FaultForm{FaultKind::wrong_class, "wrong-class", kHost, kPriority, kDuration,
              "What the host sends carries `priority`, in its DSCP too."},
    FaultForm{FaultKind::nic_reset, "nic-reset", kHost, 0, kDuration,
              "All queue pairs of the NIC fail, and its link is down for `duration`."},
    FaultForm{FaultKind::qp_error, "qp-error", kQueue, 0, 0, "The queue pair goes to the error state."},
    FaultForm{FaultKind::process_kill, "process-kill", kHost, 0, kDuration,
              "The process dies: queue pairs vanish, sockets are reset. After `duration` it starts again."},
    FaultForm{FaultKind::host_crash, "host-crash", kHost, 0, kDuration,
              "The host falls silent: nothing is sent, nothing reset. After `duration` it starts again."},
};

constexpr std::array kFields{kDuration, kDirection, kProbability, kPsn,  kIteration, kPackets,
                             kDelay,    kPeriod,    kCount,       kRate, kPriority};

template <class Number>
bool read_number(std::string_view digits, Number& number) {
  if (digits.empty() || (digits.front() == '0' && digits.size() > 1)) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size();
}

// The ends of `plan` that are port `port` of switch `node`.
std::vector<FaultTarget::End> ends_at(const TopologyPlan& plan, Node node, std::uint16_t port) {
  std::vector<FaultTarget::End> found;
  const auto numbers = link_ports(plan);
  for (std::size_t link = 0; link < plan.links.size(); ++link) {
    for (std::size_t end = 0; end < 2; ++end) {
      if (plan.links[link].ends[end] == node && numbers[link][end] == port) found.push_back({link, end});
    }
  }
  return found;
}

std::string names_of_forms(std::uint8_t forms) {
  std::string text;
  const auto add = [&](std::uint8_t bit, std::string_view form) {
    if ((forms & bit) == 0) return;
    if (!text.empty()) text += ", ";
    text += form;
  };
  add(kHost, "a host (host0)");
  add(kPort, "a port of a switch (leaf0:2)");
  add(fault_target::kLink, "a link (leaf0-spine1)");
  add(kQueue, "a queue pair (host0:qp1)");
  return text;
}

std::string what_exists(const TopologyPlan& plan) {
  constexpr std::size_t kShown = 6;
  const std::vector<std::uint16_t> ports = switch_ports(plan);
  std::string text = "there are host0 to host" + std::to_string(plan.hosts - 1) + " and the switches ";
  for (std::size_t i = 0; i < std::min(kShown, plan.switches.size()); ++i) {
    if (i != 0) text += ", ";
    text += plan.switches[i] + " (ports 0 to " + std::to_string(ports[i] - 1) + ')';
  }
  if (plan.switches.size() > kShown) {
    text +=
        " and " + std::to_string(plan.switches.size() - kShown) + " more, the last " + plan.switches.back();
  }
  return text;
}

std::string error_of_fields(const FaultSpec& fault, const FaultForm& form) {
  for (const std::uint16_t field : kFields) {
    const std::string name(field_name(field));
    const bool given = (fault.given & field) != 0;
    if (!given && (form.needs & field) != 0) {
      return "kind = " + std::string(form.name) + " needs " + name;
    }
    if (given && ((form.needs | form.may) & field) == 0) {
      std::string takes;
      for (const std::uint16_t other : kFields) {
        if (((form.needs | form.may) & other) == 0) continue;
        takes += (takes.empty() ? "" : ", ") + std::string(field_name(other));
      }
      return name + " is no parameter of kind = " + std::string(form.name) + " on target = " + fault.target +
             (takes.empty() ? ", which has none" : ", whose are: " + takes);
    }
  }
  return {};
}

std::string error_of_values(const FaultSpec& fault) {
  if (fault.at.count() < 0 || fault.duration.count() < 0) return "at and duration are zero or more";
  if (!(fault.probability >= 0 && fault.probability <= 1)) return "probability is 0 to 1";
  if (fault.priority >= kPriorities) return "priority is 0 to 7";
  if (fault.iteration == 0) return "iteration counts from 1";
  if (fault.count == 0) return "count is 1 at least";
  if (fault.kind == FaultKind::link_flap && fault.period <= fault.duration) {
    return "period must be longer than duration, for a flap ends before the next begins";
  }
  if (fault.kind == FaultKind::slow_receiver && fault.rate.bits_per_second == 0) return "rate is above zero";
  return {};
}

}  // namespace

std::span<const FaultForm> fault_forms() noexcept {
  return kForms;
}

std::string_view to_string(FaultKind kind) noexcept {
  return std::find_if(kForms.begin(), kForms.end(), [&](const FaultForm& form) { return form.kind == kind; })
      ->name;
}

std::string_view field_name(std::uint16_t field) noexcept {
  switch (field) {
    case kDuration:
      return "duration";
    case kDirection:
      return "direction";
    case kProbability:
      return "probability";
    case kPsn:
      return "psn";
    case kIteration:
      return "iteration";
    case kPackets:
      return "packets";
    case kDelay:
      return "delay";
    case kPeriod:
      return "period";
    case kCount:
      return "count";
    case kRate:
      return "rate";
    case kPriority:
      return "priority";
    default:
      return "";
  }
}

FaultTarget find_fault_target(const TopologyPlan& plan, std::string_view name) {
  FaultTarget target;
  const std::size_t colon = name.find(':');
  const auto node = find_node(plan, name.substr(0, colon));
  if (colon == std::string_view::npos) {
    for (const std::size_t link : find_links(plan, name)) {
      const auto& ends = plan.links[link].ends;
      const std::string first = node_name(plan, ends[0]);
      const bool begins = name == first || name.starts_with(first + '-');
      target.ends.push_back({link, begins ? std::size_t{0} : std::size_t{1}});
    }
    if (target.ends.empty()) return {};
    target.form = node && node->kind == NodeKind::host ? kHost : fault_target::kLink;
    if (node) target.host = node->index;
    return target;
  }
  const std::string_view rest = name.substr(colon + 1);
  if (!node) return {};
  target.host = node->index;
  if (node->kind == NodeKind::host) {
    if (!rest.starts_with("qp") || !read_number(rest.substr(2), target.queue_pair)) return {};
    if (target.queue_pair == 0) return {};
    target.form = kQueue;
    target.ends = find_fault_target(plan, name.substr(0, colon)).ends;
    return target;
  }
  std::uint16_t port = 0;
  if (!read_number(rest, port)) return {};
  target.ends = ends_at(plan, *node, port);
  target.form = target.ends.empty() ? std::uint8_t{0} : kPort;
  return target;
}

std::string find_fault_error(const FaultSpec& fault, const TopologyPlan& plan) {
  const FaultTarget target = find_fault_target(plan, fault.target);
  std::uint8_t forms = 0;
  const FaultForm* form = nullptr;
  for (const FaultForm& each : kForms) {
    if (each.kind != fault.kind) continue;
    forms |= each.targets;
    if ((each.targets & target.form) != 0) form = &each;
  }
  if (target.form == 0) {
    return "target = '" + fault.target + "' does not exist: " + what_exists(plan) +
           "; kind = " + std::string(to_string(fault.kind)) + " is done to " + names_of_forms(forms);
  }
  if (form == nullptr) {
    return "target = '" + fault.target + "' is not what kind = " + std::string(to_string(fault.kind)) +
           " is done to: " + names_of_forms(forms);
  }
  if (std::string error = error_of_fields(fault, *form); !error.empty()) return error;
  return error_of_values(fault);
}

}  // namespace bx::sim
