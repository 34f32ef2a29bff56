// SPDX-License-Identifier: GPL-2.0-only
// The simulated fabric as ns-3 sees it: one channel that all its devices are attached to. It moves nothing
// itself; links and switches do (sim/model).
#pragma once

#include <ns3/channel.h>
#include <ns3/net-device.h>

#include <cstddef>
#include <vector>

namespace bx::sim {

class FabricChannel final : public ns3::Channel {
 public:
  static ns3::TypeId GetTypeId();
  std::size_t GetNDevices() const override { return devices_.size(); }
  ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override { return devices_.at(i); }
  void attach(ns3::Ptr<ns3::NetDevice> device) { devices_.push_back(std::move(device)); }

 private:
  void DoDispose() override;
  std::vector<ns3::Ptr<ns3::NetDevice>> devices_;
};

}  // namespace bx::sim
