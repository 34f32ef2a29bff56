// SPDX-License-Identifier: GPL-2.0-only
// An open host of a simulated network. Closing it leaves its NIC in place; opening it again is a restart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libbx/fabric/fabric.h"
#include "libbx/providers/virtual/virtual_reactor.h"
#include "libbx/providers/virtual/virtual_streams.h"
#include "sim/provider/sim_device.h"
#include "sim/provider/sim_network.h"

namespace bx::sim {

class SimHost final : public fabric::Host {
 public:
  SimHost(SimNetwork& network, std::uint16_t index, std::string_view name, Prng prng);
  ~SimHost() override;
  SimHost(const SimHost&) = delete;
  SimHost& operator=(const SimHost&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  fabric::Reactor& reactor() noexcept override { return reactor_; }
  fabric::Device& device() noexcept override { return device_; }
  fabric::StreamNetwork& streams() noexcept override { return streams_; }
  Prng& prng() noexcept override { return prng_; }

 private:
  SimNetwork& network_;
  std::uint16_t index_;
  std::string name_;
  Prng prng_;
  virtual_time::VirtualReactor reactor_;
  SimDevice device_;
  virtual_time::VirtualStreams streams_;
};

}  // namespace bx::sim
