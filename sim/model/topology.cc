// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology.h"

#include <algorithm>

namespace bx::sim {
namespace {

SwitchConfig with_ports(SwitchConfig config, std::uint16_t ports) {
  config.buffer.ports = ports;
  return config;
}

}  // namespace

Result<> SingleSwitch::check(const SingleSwitchConfig& config) {
  const Result<BufferPlan> plan = check_switch(with_ports(config.fabric, config.hosts));
  if (!plan) return tl::unexpected(plan.error());
  return {};
}

SingleSwitch::SingleSwitch(Engine& engine, FramePool& pool, const SingleSwitchConfig& config,
                           const Prng& random)
    : delay_(config.delay),
      switch_(engine, pool, with_ports(config.fabric, config.hosts), random.fork("switch")) {
  for (std::uint16_t host = 0; host < config.hosts; ++host) switch_.set_route(host, {&host, 1});
}

void SingleSwitch::connect_host(std::uint16_t host, Port& nic_port) {
  Port::connect(nic_port, switch_.port(host), delay_);
  nic_port.set_digest(&digest_);
}

std::uint64_t headroom_shortfall_bytes(const SwitchConfig& config, Picoseconds delay,
                                       std::uint32_t frame_bytes) noexcept {
  const std::uint64_t needed = headroom_needed_bytes(
      {.rate = config.rate, .delay = delay, .own_frame_bytes = frame_bytes, .peer_frame_bytes = frame_bytes});
  std::uint64_t shortfall = 0;
  for (const ClassBufferConfig& c : config.buffer.classes) {
    if (c.lossless && c.headroom_bytes < needed) shortfall = std::max(shortfall, needed - c.headroom_bytes);
  }
  return shortfall;
}

}  // namespace bx::sim
