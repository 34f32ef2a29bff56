// SPDX-License-Identifier: GPL-2.0-only
// Everything of a simulated network that is there whether or not a host is open: engine, links, switches,
// NICs and the stream network. A host is a port of a NIC with an address and a process of its own; a NIC has
// NicSpec::ports of them: hosts 0 and 1 are the ports of the first one, and so on.
//
//   SimFabric --owns--> SimNetwork  <--refers-- SimHost (reactor, device, streams, prng), while it is open
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/stream_world.h"
#include "sim/model/engine.h"
#include "sim/model/fault_injector.h"
#include "sim/model/frame.h"
#include "sim/model/nic.h"
#include "sim/model/topology.h"
#include "sim/provider/engine_loop.h"
#include "sim/provider/network_plan.h"
#include "sim/provider/nic_events.h"
#include "sim/provider/sim_config.h"

namespace bx::sim {

class SimHost;

class SimNetwork final : private HostFaultListener {
 public:
  SimNetwork(const SimConfig& config, const NetworkPlan& plan);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  [[nodiscard]] const SimConfig& config() const noexcept { return config_; }
  [[nodiscard]] const Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  [[nodiscard]] virtual_time::AlarmPool& alarms() noexcept { return alarms_; }
  [[nodiscard]] virtual_time::StreamWorld& streams() noexcept { return streams_; }
  [[nodiscard]] const EngineLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] const Prng& prng() const noexcept { return prng_; }
  [[nodiscard]] const Topology& topology() const noexcept { return topology_; }
  [[nodiscard]] Topology& topology() noexcept { return topology_; }
  [[nodiscard]] std::size_t hosts() const noexcept { return hosts_.size(); }
  // Of a host, which may share it.
  [[nodiscard]] const Nic& nic(std::size_t host) const noexcept { return *hosts_[host].nic; }
  [[nodiscard]] const Port& port(std::size_t host) const noexcept { return *hosts_[host].wire; }
  // Each once, in the order of their first hosts.
  [[nodiscard]] std::size_t nics() const noexcept { return nics_.size(); }
  [[nodiscard]] const Nic& nic_at(std::size_t index) const noexcept { return nics_[index]->nic; }
  // Null when nothing is to go wrong.
  [[nodiscard]] FaultInjector* faults() noexcept { return faults_ ? &*faults_ : nullptr; }
  [[nodiscard]] const FaultInjector* faults() const noexcept { return faults_ ? &*faults_ : nullptr; }
  // Told of dying processes and hosts, and when they are to start again.
  void set_host_fault_listener(HostFaultListener* listener) noexcept { host_fault_listener_ = listener; }
  [[nodiscard]] const FramePool& frames() const noexcept { return frames_; }
  // Of all partitions; see Partitions.
  bool run(Picoseconds limit) { return topology_.partitions().run(limit, config_.threads); }
  [[nodiscard]] std::uint64_t events() const noexcept { return topology_.partitions().events(); }

  struct HostSlot {
    Nic* nic = nullptr;
    NicEvents* events = nullptr;
    std::uint8_t port = 0;  // of the NIC
    const Port* wire = nullptr;
    SimHost* open = nullptr;
    std::uint32_t openings = 0;  // each gets random numbers of its own
  };
  [[nodiscard]] HostSlot& slot(std::size_t host) noexcept { return hosts_[host]; }

 private:
  void on_host_fault(std::uint16_t host, FaultKind kind, bool begins) override;

  SimConfig config_;
  Engine engine_;
  EngineLoop loop_;
  virtual_time::AlarmPool alarms_;
  virtual_time::StreamWorld streams_;
  Prng prng_;
  FramePool frames_;
  Topology topology_;
  struct SharedNic {
    SharedNic(Engine& engine, FramePool& frames, const NicConfig& config)
        : nic(engine, frames, config), events(nic) {}
    Nic nic;
    NicEvents events;
  };
  std::vector<std::unique_ptr<SharedNic>> nics_;
  std::vector<HostSlot> hosts_;
  std::optional<FaultInjector> faults_;
  HostFaultListener* host_fault_listener_ = nullptr;
};

}  // namespace bx::sim
