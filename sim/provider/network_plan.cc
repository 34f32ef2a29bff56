// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/network_plan.h"

#include <algorithm>
#include <bit>

#include "sim/model/topology_shapes.h"
#include "sim/provider/sim_fabric.h"

namespace bx::sim {
namespace {

// Above, times of single packets would not be whole picoseconds to any use.
constexpr std::uint64_t kRateMax = 100'000'000'000'000;
constexpr std::uint64_t kDelayMaxNs = 1'000'000'000;
constexpr std::uint64_t kBytesMax = UINT32_MAX;  // of what the model counts in 32 bits

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

bool is_lossless(const SimConfig& config, std::size_t priority) noexcept {
  return config.pfc.enabled && ((config.buffer.lossless_priorities >> priority) & 1U) != 0;
}

const char* fault_of(const SimConfig& config) noexcept {
  if (config.hosts == 0 || config.hosts > kHostsMax) return "hosts: give 1 to 4096";
  if (config.rate_bps == 0 || config.rate_bps > kRateMax) return "rate: give 1 bit/s to 100 Tbit/s";
  if (config.delay_ns > kDelayMaxNs) return "delay: give at most one second";
  if (!std::has_single_bit(config.mtu) || config.mtu < 256 || config.mtu > kPayloadMax) {
    return "mtu: give 256, 512, 1024, 2048 or 4096";
  }
  if (config.pfc.enabled && config.pfc.quanta == 0) return "pfc.quanta: give 1 to 65535";
  if (config.pfc.headroom_bytes > kBytesMax || config.pfc.xon_offset_bytes > kBytesMax ||
      config.buffer.reserved_bytes > kBytesMax) {
    return "pfc.headroom, pfc.xon_offset, buffer.reserved: give less than 4 GiB";
  }
  if (config.pfc.enabled && config.pfc.headroom_bytes != 0 &&
      config.pfc.headroom_bytes < SimFabric::headroom_needed_bytes(config)) {
    return "pfc.headroom: too little for the rate, the delay and the MTU, so a lossless class would drop; "
           "leave it out (or \"auto\") to have what is needed";
  }
  if (config.buffer.alpha_log2 < -10 || config.buffer.alpha_log2 > 10) {
    return "buffer.alpha: give 2^-10 to 2^10";
  }
  if (config.ecn.enabled && config.ecn.kmin_bytes >= config.ecn.kmax_bytes) {
    return "ecn.kmin must be less than ecn.kmax";
  }
  if (config.ecn.enabled && !(config.ecn.pmax >= 0 && config.ecn.pmax <= 1)) {
    return "ecn.pmax: give 0 to 1";
  }
  if (config.nic_tx_latency_ns > kDelayMaxNs || config.nic_rx_latency_ns > kDelayMaxNs) {
    return "nic latencies: give at most one second";
  }
  if (config.message_bytes_max == 0 || config.message_bytes_max > (1ULL << 31U)) {
    return "message_bytes_max: give 1 byte to 2 GiB";
  }
  return nullptr;
}

}  // namespace

std::uint32_t frame_bytes_max(const SimConfig& config) noexcept {
  // The same headers as in the largest frame there is, around a shorter payload.
  return kFrameBytesMax - static_cast<std::uint32_t>(kPayloadMax) + config.mtu;
}

BufferConfig buffer_of(const SimConfig& config) noexcept {
  BufferConfig buffer{.total_bytes = config.buffer.bytes,
                      .ports = static_cast<std::uint16_t>(std::min<std::size_t>(config.hosts, kHostsMax)),
                      .frame_bytes_max = frame_bytes_max(config)};
  const std::uint64_t headroom =
      config.pfc.headroom_bytes != 0 ? config.pfc.headroom_bytes : SimFabric::headroom_needed_bytes(config);
  for (std::size_t p = 0; p < buffer.classes.size(); ++p) {
    ClassBufferConfig& c = buffer.classes[p];
    c.lossless = is_lossless(config, p);
    c.alpha_log2 = static_cast<std::int8_t>(config.buffer.alpha_log2);
    c.reserved_bytes = static_cast<std::uint32_t>(config.buffer.reserved_bytes);
    if (!c.lossless) continue;
    c.headroom_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(headroom, UINT32_MAX));
    c.xon_offset_bytes = static_cast<std::uint32_t>(config.pfc.xon_offset_bytes);
  }
  return buffer;
}

Result<NetworkPlan> plan_network(const SimConfig& config) {
  if (const char* fault = fault_of(config); fault != nullptr) return invalid(fault);
  const Rate rate{config.rate_bps};
  NetworkPlan plan;
  plan.topology.plan =
      single_switch(static_cast<std::uint16_t>(config.hosts),
                    {.rate = rate, .delay = nanoseconds{static_cast<std::int64_t>(config.delay_ns)}});
  plan.topology.fabric.buffer = buffer_of(config);
  plan.topology.fabric.pause_quanta = std::max<std::uint16_t>(config.pfc.quanta, 1);
  if (config.ecn.enabled) {
    plan.topology.fabric.ecn.fill({config.ecn.kmin_bytes, config.ecn.kmax_bytes, config.ecn.pmax});
  }
  plan.nic.rate = rate;
  plan.nic.fetch_latency = nanoseconds{static_cast<std::int64_t>(config.nic_tx_latency_ns)};
  plan.nic.write_back_latency = nanoseconds{static_cast<std::int64_t>(config.nic_rx_latency_ns)};
  plan.nic.message_bytes_max = config.message_bytes_max;
  const Result<> checked = Topology::check(plan.topology);
  if (!checked) return tl::unexpected<Error>(checked.error());
  return plan;
}

}  // namespace bx::sim
