// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/fault_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace bx::harness {
namespace {

sim::Picoseconds picoseconds(std::uint64_t ns) {
  return sim::nanoseconds{static_cast<std::int64_t>(ns)};
}

constexpr std::uint16_t kLastField = sim::fault_field::kPriority;

std::string names_of(std::uint16_t fields) {
  std::string text;
  for (std::uint16_t field = 1; field <= kLastField; field = static_cast<std::uint16_t>(field << 1U)) {
    if ((fields & field) != 0)
      text += fmt::format("{}`{}`", text.empty() ? "" : ", ", sim::field_name(field));
  }
  return text;
}

std::string targets_of(std::uint8_t forms) {
  if (forms == sim::fault_target::kWire) return "host, port, link";
  std::string text;
  const auto add = [&](std::uint8_t bit, std::string_view name) {
    if ((forms & bit) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  };
  add(sim::fault_target::kHost, "host");
  add(sim::fault_target::kPort, "port");
  add(sim::fault_target::kLink, "link");
  add(sim::fault_target::kQueue, "queue pair");
  return text;
}

}  // namespace

sim::FaultSpec FaultEntry::spec() const {
  sim::FaultSpec spec{
      .target = target,
      .at = picoseconds(at_ns),
      .duration = picoseconds(duration_ns),
      .probability = probability,
      .psn = static_cast<std::uint32_t>(psn),
      .iteration = static_cast<std::uint32_t>(iteration),
      .packets = packets == "answers" ? sim::FaultPackets::answers : sim::FaultPackets::requests,
      .delay = picoseconds(delay_ns),
      .period = picoseconds(period_ns),
      .count = static_cast<std::uint32_t>(count),
      .rate = {rate_bps},
      .priority = static_cast<std::uint8_t>(priority),
  };
  if (direction == "sent") spec.direction = sim::FaultDirection::sent;
  if (direction == "received") spec.direction = sim::FaultDirection::received;
  for (const sim::FaultForm& form : sim::fault_forms()) {
    if (form.name == kind) spec.kind = form.kind;
  }
  for (std::uint16_t field = 1; field <= kLastField; field = static_cast<std::uint16_t>(field << 1U)) {
    if (given.contains(sim::field_name(field))) spec.given = static_cast<std::uint16_t>(spec.given | field);
  }
  return spec;
}

std::vector<std::string> fault_kind_names() {
  std::vector<std::string> names;
  for (const sim::FaultForm& form : sim::fault_forms()) {
    if (names.empty() || names.back() != form.name) names.emplace_back(form.name);
  }
  return names;
}

FaultError find_error(const FaultEntry& fault, const sim::TopologyPlan& plan) {
  const std::string sentence = sim::find_fault_error(fault.spec(), plan);
  return {sentence.substr(0, sentence.find(' ')), sentence};
}

std::string fault_documentation() {
  std::string text = "| kind | done to | needs | may have | what happens |\n|---|---|---|---|---|\n";
  for (const sim::FaultForm& form : sim::fault_forms()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", form.name, targets_of(form.targets),
                        names_of(form.needs), names_of(form.may), form.sentence);
  }
  return text;
}

}  // namespace bx::harness
