// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_network.h"

#include <string>
#include <utility>
#include <vector>

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
  const auto ports = static_cast<std::uint16_t>(config.nic.ports);
  for (std::uint16_t host = 0; host < topology_.hosts(); host = static_cast<std::uint16_t>(host + ports)) {
    NicConfig nic = plan.nic;
    nic.host = host;
    for (std::uint16_t port = 1; port < ports; ++port) {
      nic.more_hosts.push_back(static_cast<std::uint16_t>(host + port));
    }
    nic.rate = topology_.host_rate(host);
    // What a profile scales by the line's rate follows each NIC's own; what was right of the slowest is.
    if (nic.rate.bits_per_second != plan.nic.rate.bits_per_second) {
      nic.congestion = plan_congestion(config.congestion, nic.rate).value();
    }
    Partitions& parts = topology_.partitions();
    const std::size_t partition = parts.of_host(host);
    SharedNic& shared = *nics_.emplace_back(
        std::make_unique<SharedNic>(parts.engine(partition), parts.frames(partition), nic));
    for (std::uint8_t port = 0; port < ports; ++port) {
      const auto own = static_cast<std::uint16_t>(host + port);
      hosts_[own] = {
          .nic = &shared.nic, .events = &shared.events, .port = port, .wire = &shared.nic.port(port)};
      topology_.connect_host(own, shared.nic.port(port));
    }
  }
  if (config_.faults.empty()) return;
  std::vector<Nic*> nics;
  for (const HostSlot& host : hosts_) nics.push_back(host.nic);
  faults_.emplace(engine_, frames_, topology_, std::move(nics), config_.faults, prng_);
  faults_->set_listener(this);
}

void SimNetwork::on_host_fault(std::uint16_t host, FaultKind kind, bool begins) {
  // Silent before the software goes, so that nothing it does at its end is heard; heard again before it is
  // back.
  if (kind == FaultKind::host_crash) {
    streams_.set_silent("host" + std::to_string(host), begins);
  }
  if (host_fault_listener_ != nullptr) host_fault_listener_->on_host_fault(host, kind, begins);
}

SimNetwork::~SimNetwork() {
  for (const HostSlot& host : hosts_) {
    BX_CHECK(host.open == nullptr, "a simulated fabric was destroyed before its hosts");
  }
}

}  // namespace bx::sim
