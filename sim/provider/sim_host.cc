// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_host.h"

namespace bx::sim {

SimHost::SimHost(SimNetwork& network, std::uint16_t index, std::string_view name, Prng prng)
    : network_(network),
      index_(index),
      name_(name),
      prng_(prng),
      reactor_(network.alarms(), virtual_time::HostCpu(network.config().cpu)),
      device_({network.slot(index).nic, network.slot(index).events, network.slot(index).port}, reactor_,
              network.config().mtu, prng.fork("device")),
      streams_(network.streams(), reactor_, name) {
  network_.slot(index_).open = this;
}

SimHost::~SimHost() {
  network_.slot(index_).open = nullptr;
}

}  // namespace bx::sim
