// SPDX-License-Identifier: GPL-2.0-only
#include "harness/scenario/settings.h"

namespace bx::harness {

std::string_view to_string(Origin origin) noexcept {
  switch (origin) {
    case Origin::default_value:
      return "default";
    case Origin::workload:
      return "workload";
    case Origin::scenario:
      return "scenario";
    case Origin::knob_file:
      return "knob file";
    case Origin::environment:
      return "environment";
    case Origin::command_line:
      return "--set";
    case Origin::variant:
      return "variant";
  }
  return "unknown";
}

std::string_view to_string(WorkloadKind kind) noexcept {
  switch (kind) {
    case WorkloadKind::ps_fetch:
      return "ps-fetch";
    case WorkloadKind::incast:
      return "incast";
    case WorkloadKind::rpc:
      return "rpc";
    case WorkloadKind::flows:
      return "flows";
  }
  return "unknown";
}

WorkloadKind WorkloadSpec::workload_kind() const {
  if (kind == "incast") return WorkloadKind::incast;
  if (kind == "rpc") return WorkloadKind::rpc;
  if (kind == "flows") return WorkloadKind::flows;
  return WorkloadKind::ps_fetch;
}

Origin Settings::origin(std::string_view key) const {
  const auto found = set_by.find(key);
  return found == set_by.end() ? Origin::default_value : found->second.origin;
}

}  // namespace bx::harness
