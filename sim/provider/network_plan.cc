// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/network_plan.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "libbx/base/path_mtu.h"
#include "sim/provider/sim_fabric.h"

namespace bx::sim {
namespace {

// Above, times of single packets would not be whole picoseconds to any use.
constexpr std::uint64_t kRateMax = 100'000'000'000'000;
constexpr std::uint64_t kDelayMaxNs = 1'000'000'000;
constexpr std::uint64_t kWatchdogMaxNs = 1'000'000'000'000;
constexpr std::uint64_t kBytesMax = UINT32_MAX;  // of what the model counts in 32 bits

tl::unexpected<Error> invalid(const char* detail) {
  return fail(ErrorCode::invalid_argument, ErrorScope::device, detail);
}

bool is_lossless(const SimConfig& config, std::size_t priority) noexcept {
  return config.pfc.enabled && ((config.buffer.lossless_priorities >> priority) & 1U) != 0;
}

// The watchdog's action, or none for a word that is not one.
std::optional<WatchdogAction> action_of(std::string_view word) noexcept {
  if (word == "off") return WatchdogAction::off;
  if (word == "drop") return WatchdogAction::drop;
  if (word == "forward") return WatchdogAction::forward;
  return std::nullopt;
}

const char* fault_of_switch(const SimConfig& config) noexcept {
  if (!action_of(config.pfc.watchdog)) return "pfc.watchdog: give off, drop or forward";
  for (const std::uint64_t time :
       {config.pfc.watchdog_detect_ns, config.pfc.watchdog_restore_ns, config.pfc.watchdog_poll_ns}) {
    if (time == 0 || time > kWatchdogMaxNs) return "pfc.watchdog times: give more than 0 and at most 1000 s";
  }
  if (config.buffer.profile != "none" && find_buffer_profile(config.buffer.profile) == nullptr) {
    return "profile: give none, td2, th, th2, td3 or spectrum";
  }
  if (config.topology.uplink_rate_bps > kRateMax || config.topology.uplink_delay_ns > kDelayMaxNs ||
      config.topology.reroute_delay_ns > kWatchdogMaxNs) {
    return "topology: uplinks are at most 100 Tbit/s and one second, rerouting takes at most 1000 s";
  }
  return nullptr;
}

const char* fault_of(const SimConfig& config) noexcept {
  if (config.hosts == 0 || config.hosts > kHostsMax) return "hosts: give 1 to 4096";
  if (config.rate_bps == 0 || config.rate_bps > kRateMax) return "rate: give 1 bit/s to 100 Tbit/s";
  if (config.delay_ns > kDelayMaxNs) return "delay: give at most one second";
  if (!is_path_mtu(config.mtu)) {
    return "mtu: give 256, 512, 1024, 2048 or 4096";
  }
  if (config.pfc.enabled && config.pfc.quanta == 0) return "pfc.quanta: give 1 to 65535";
  if (config.pfc.headroom_bytes > kBytesMax || config.pfc.xon_offset_bytes > kBytesMax ||
      config.buffer.reserved_bytes > kBytesMax) {
    return "pfc.headroom, pfc.xon_offset, reserved: give less than 4 GiB";
  }
  if (config.pfc.enabled && config.pfc.headroom_bytes != 0 &&
      config.pfc.headroom_bytes < SimFabric::headroom_needed_bytes(config)) {
    return "pfc.headroom: too little for the rate, the delay and the MTU, so a lossless class would drop; "
           "leave it out (or \"auto\") to have what is needed";
  }
  if (config.buffer.alpha_log2 < -10 || config.buffer.alpha_log2 > 10) {
    return "alpha: give 2^-10 to 2^10";
  }
  if (config.ecn.enabled && config.ecn.kmin_bytes >= config.ecn.kmax_bytes) {
    return "ecn.kmin: give less than ecn.kmax";
  }
  if (config.ecn.enabled && !(config.ecn.pmax >= 0 && config.ecn.pmax <= 1)) {
    return "ecn.pmax: give 0 to 1";
  }
  if (config.ecn.mark_at != "enqueue" && config.ecn.mark_at != "dequeue") {
    return "ecn.mark_at: give enqueue or dequeue";
  }
  if (config.nic_tx_latency_ns > kDelayMaxNs || config.nic_rx_latency_ns > kDelayMaxNs) {
    return "nic latencies: give at most one second";
  }
  if (config.message_bytes_max == 0 || config.message_bytes_max > (1ULL << 31U)) {
    return "message_bytes_max: give 1 byte to 2 GiB";
  }
  if (config.payload != "moved" && config.payload != "lengths") return "payload: give moved or lengths";
  return fault_of_switch(config);
}

// Without ports, whose number and headroom follow from the topology.
BufferConfig shared_buffer(const SimConfig& config) noexcept {
  BufferConfig buffer{.total_bytes = config.buffer.bytes, .frame_bytes_max = frame_bytes_max(config)};
  for (std::size_t p = 0; p < buffer.classes.size(); ++p) {
    ClassBufferConfig& c = buffer.classes[p];
    c.lossless = is_lossless(config, p);
    c.alpha_log2 = static_cast<std::int8_t>(config.buffer.alpha_log2);
    c.reserved_bytes = static_cast<std::uint32_t>(config.buffer.reserved_bytes);
    if (!c.lossless) continue;
    c.headroom_bytes = static_cast<std::uint32_t>(config.pfc.headroom_bytes);
    c.xon_offset_bytes = static_cast<std::uint32_t>(config.pfc.xon_offset_bytes);
  }
  return buffer;
}

SwitchConfig switch_of(const SimConfig& config) {
  SwitchConfig fabric;
  fabric.buffer = shared_buffer(config);
  fabric.pause_quanta = std::max<std::uint16_t>(config.pfc.quanta, 1);
  if (config.ecn.enabled) fabric.ecn.fill({config.ecn.kmin_bytes, config.ecn.kmax_bytes, config.ecn.pmax});
  if (config.ecn.mark_at == "dequeue") fabric.ecn_point = EcnPoint::dequeue;
  fabric.weights = config.scheduling.weights;
  fabric.priorities = config.scheduling.priorities;
  const auto ns = [](std::uint64_t n) { return nanoseconds{static_cast<std::int64_t>(n)}; };
  fabric.watchdog = {.action = *action_of(config.pfc.watchdog),
                     .detect = ns(config.pfc.watchdog_detect_ns),
                     .restore = ns(config.pfc.watchdog_restore_ns),
                     .poll = ns(config.pfc.watchdog_poll_ns)};
  return fabric;
}

// Of the hosts' links: all the same, unless a file says otherwise.
Rate slowest_host_rate(const TopologyPlan& plan) noexcept {
  Rate slowest{UINT64_MAX};
  for (const LinkPlan& link : plan.links) {
    const bool of_host = link.ends[0].kind == NodeKind::host || link.ends[1].kind == NodeKind::host;
    if (of_host && link.speed.rate.bits_per_second < slowest.bits_per_second) slowest = link.speed.rate;
  }
  return slowest;
}

const char* fault_of_ports(std::uint32_t ports, const TopologyPlan& plan) {
  if (ports == 0 || ports > RcEnvironment::kPortsMax) return "nic.ports: give 1 to 4";
  if (plan.hosts % ports != 0) return "nic.ports: give a divisor of the number of hosts";
  std::vector<std::uint64_t> rates(plan.hosts);
  for (const LinkPlan& link : plan.links) {
    for (const Node node : link.ends) {
      if (node.kind == NodeKind::host) rates[node.index] = link.speed.rate.bits_per_second;
    }
  }
  for (std::size_t host = 0; host < rates.size(); ++host) {
    if (rates[host] != rates[host - host % ports])
      return "nic.ports: the ports of a NIC need links of one rate";
  }
  return nullptr;
}

const char* fault_of_partitions(const SimConfig& config) noexcept {
  if (config.threads == 0) return "threads: give at least one";
  if (config.partitions == 1) return nullptr;
  if (config.engine != EngineKind::fast) return "partitions: several need the fast engine";
  if (config.nic.ports != 1) return "partitions: several need NICs of one port";
  if (!config.faults.empty()) return "partitions: faults can be injected into one partition only";
  return nullptr;
}

}  // namespace

std::uint32_t frame_bytes_max(const SimConfig& config) noexcept {
  // The same headers as in the largest frame there is, around a shorter payload.
  return kFrameBytesMax - static_cast<std::uint32_t>(kPayloadMax) + config.mtu;
}

Result<NetworkPlan> plan_network(const SimConfig& config) {
  if (const char* fault = fault_of(config); fault != nullptr) return invalid(fault);
  Result<TopologyPlan> topology = plan_topology(config);
  if (!topology) return tl::unexpected<Error>(topology.error());
  NetworkPlan plan;
  plan.topology.plan = std::move(*topology);
  if (const char* fault = fault_of_partitions(config); fault != nullptr) return invalid(fault);
  plan.topology.partitions = config.partitions;
  plan.topology.fabric = switch_of(config);
  plan.topology.reroute_delay = nanoseconds{static_cast<std::int64_t>(config.topology.reroute_delay_ns)};
  if (config.pfc.headroom_bytes == 0) plan.topology.headroom = HeadroomRule::computed;
  if (const BufferProfile* profile = find_buffer_profile(config.buffer.profile); profile != nullptr) {
    apply_profile(*profile, plan.topology.fabric.buffer);
    plan.topology.profile = profile;
    if (config.pfc.headroom_bytes == 0) plan.topology.headroom = HeadroomRule::profile;
  }
  for (const FaultSpec& fault : config.faults) {
    if (!find_fault_error(fault, plan.topology.plan).empty()) {
      return invalid("faults: one of them cannot be; find_fault_error says why");
    }
  }
  if (const char* fault = fault_of_ports(config.nic.ports, plan.topology.plan); fault != nullptr) {
    return invalid(fault);
  }
  plan.nic.rate = slowest_host_rate(plan.topology.plan);
  plan.nic.fetch_latency = nanoseconds{static_cast<std::int64_t>(config.nic_tx_latency_ns)};
  plan.nic.write_back_latency = nanoseconds{static_cast<std::int64_t>(config.nic_rx_latency_ns)};
  plan.nic.message_bytes_max = config.message_bytes_max;
  const bool selective = config.loss_recovery == "selective-repeat";
  if (!selective && config.loss_recovery != "go-back-n") {
    return invalid("nic.loss_recovery is go-back-n or selective-repeat");
  }
  if (config.recovery_window == 0) return invalid("nic.recovery_window is at least one packet");
  plan.nic.recovery = {.kind = selective ? LossRecovery::selective_repeat : LossRecovery::go_back_n,
                       .window_packets = config.recovery_window,
                       .ack_every = config.ack_every,
                       .ack_delay = nanoseconds{static_cast<std::int64_t>(config.ack_delay_ns)}};
  const Result<CongestionConfig> congestion = plan_congestion(config.congestion, plan.nic.rate);
  if (!congestion) return tl::unexpected<Error>(congestion.error());
  if (congestion->algorithm == CongestionAlgorithm::dcqcn && !config.ecn.enabled) {
    return invalid("congestion_control.algorithm: dcqcn needs the switches' marks; set ecn.enabled = true");
  }
  plan.nic.congestion = *congestion;
  const Result<NicCostConfig> costs = plan_costs(config.nic);
  if (!costs) return tl::unexpected<Error>(costs.error());
  plan.nic.costs = *costs;
  if (config.payload == "lengths") plan.nic.payload_kept = config.payload_kept_bytes;
  const Result<> checked = Topology::check(plan.topology);
  if (!checked) return tl::unexpected<Error>(checked.error());
  return plan;
}

Result<BufferConfig> buffer_of(const SimConfig& config) {
  const Result<NetworkPlan> plan = plan_network(config);
  if (!plan) return tl::unexpected<Error>(plan.error());
  const std::size_t at = Routing(plan->topology.plan).attachments()[0].at;
  return Topology::switch_config(plan->topology, at).buffer;
}

}  // namespace bx::sim
