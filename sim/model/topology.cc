// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/topology.h"

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

}  // namespace bx::sim
