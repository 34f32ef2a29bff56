// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_network.h"

#include "libbx/base/check.h"

namespace bx::sim {

SimNetwork::SimNetwork(const SimConfig& config, const NetworkPlan& plan)
    : config_(config),
      engine_(config.engine),
      loop_(engine_),
      alarms_(loop_),
      streams_(alarms_, virtual_time::StreamConfig{}),
      prng_(config.seed),
      topology_(engine_, frames_, plan.topology, prng_),
      hosts_(config.hosts) {
  for (std::uint16_t host = 0; host < topology_.hosts(); ++host) {
    NicConfig nic = plan.nic;
    nic.host = host;
    nic.rate = topology_.host_rate(host);
    hosts_[host].nic = std::make_unique<Nic>(engine_, frames_, nic);
    topology_.connect_host(host, hosts_[host].nic->port());
  }
}

SimNetwork::~SimNetwork() {
  for (const HostSlot& host : hosts_) {
    BX_CHECK(host.open == nullptr, "a simulated fabric was destroyed before its hosts");
  }
}

}  // namespace bx::sim
