// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/nic_spec.h"

#include <algorithm>

namespace bx::sim {
namespace {

constexpr std::uint64_t kNumberMax = UINT32_MAX;

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

template <class T>
void replace(T& member, std::uint64_t value) {
  if (value != 0) member = static_cast<T>(std::min(value, kNumberMax));
}
void replace(Picoseconds& member, std::uint64_t ns) {
  if (ns != 0) member = nanoseconds{static_cast<std::int64_t>(std::min(ns, kNumberMax))};
}

bool is_default(const NicSpec& spec) noexcept {
  const std::uint64_t numbers =
      spec.pcie_rate_bps | spec.pcie_read_latency_ns | spec.pcie_write_latency_ns | spec.pcie_payload_bytes |
      spec.pcie_overhead_bytes | spec.doorbell_ns | spec.wqes_per_fetch | spec.blueflame_bytes | spec.units |
      spec.packet_rate | spec.qp_cache | spec.translation_cache | spec.page_bytes | spec.receive_buffer_bytes;
  return numbers == 0 && spec.late_dma == "auto";
}

void replace_numbers(const NicSpec& spec, NicCostConfig& costs) {
  if (spec.pcie_rate_bps != 0) costs.pcie.rate = {spec.pcie_rate_bps};
  replace(costs.pcie.read_latency, spec.pcie_read_latency_ns);
  replace(costs.pcie.write_latency, spec.pcie_write_latency_ns);
  replace(costs.pcie.payload_max, spec.pcie_payload_bytes);
  replace(costs.pcie.tlp_overhead, spec.pcie_overhead_bytes);
  replace(costs.doorbell, spec.doorbell_ns);
  replace(costs.wqes_per_fetch, spec.wqes_per_fetch);
  replace(costs.blueflame_bytes, spec.blueflame_bytes);
  replace(costs.units, spec.units);
  replace(costs.packets_per_second, spec.packet_rate);
  replace(costs.queue_pairs.entries, spec.qp_cache);
  replace(costs.translations.entries, spec.translation_cache);
  replace(costs.page_bytes, spec.page_bytes);
  if (spec.receive_buffer_bytes != 0) {
    costs.receive_buffer_bytes = spec.receive_buffer_bytes;
    costs.receive_xoff_bytes = spec.receive_buffer_bytes / 4;
  }
  if (spec.late_dma != "auto") costs.late_dma = spec.late_dma == "on";
}

}  // namespace

Result<NicCostConfig> plan_costs(const NicSpec& spec) {
  const NicCostConfig* profile = find_nic_profile(spec.profile);
  if (profile == nullptr) return invalid("nic.profile: give none, ideal or connectx5");
  if (spec.late_dma != "auto" && spec.late_dma != "on" && spec.late_dma != "off") {
    return invalid("nic.late_dma: give auto, on or off");
  }
  if (!profile->enabled) {
    if (!is_default(spec)) return invalid("nic.profile: costs need one to change; give ideal or connectx5");
    return NicCostConfig{};
  }
  NicCostConfig costs = *profile;
  replace_numbers(spec, costs);
  if (const Result<> checked = check_costs(costs); !checked) return tl::unexpected<Error>(checked.error());
  return costs;
}

}  // namespace bx::sim
