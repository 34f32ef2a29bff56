// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/fabric/fault_plan.h"

#include <algorithm>

namespace bx::fabric {

FaultInjector::FaultInjector(const FaultPlan& plan, std::string_view host,
                             std::array<std::uint64_t, kFaultKinds>& injected)
    : plan_(plan), host_(host), injected_(injected) {
  const Prng root = Prng(plan.seed).fork(host);
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    streams_.push_back(root.fork(std::to_string(kind)));
  }
}

bool FaultInjector::strikes(FaultKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  const std::uint64_t opportunity = ++opportunities_[index];
  const bool planned = std::ranges::any_of(plan_.planned, [&](const PlannedFault& fault) {
    return fault.kind == kind && fault.nth == opportunity && (fault.host.empty() || fault.host == host_);
  });
  const bool by_chance = plan_.chances[index] > 0 && streams_[index].chance(plan_.chances[index]);
  if (!planned && !by_chance) return false;
  ++injected_[index];
  return true;
}

Duration FaultInjector::delay() noexcept {
  Prng& stream = streams_[static_cast<std::size_t>(FaultKind::completion_delay)];
  const auto low = static_cast<std::uint64_t>(plan_.delay_min.count());
  const auto high = static_cast<std::uint64_t>(plan_.delay_max.count());
  return Duration{static_cast<std::int64_t>(stream.between(low, high))};
}

std::size_t FaultInjector::shorter(std::size_t count) noexcept {
  return static_cast<std::size_t>(streams_[static_cast<std::size_t>(FaultKind::short_post)].below(count));
}

}  // namespace bx::fabric
