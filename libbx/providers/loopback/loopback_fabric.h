// SPDX-License-Identifier: BSD-3-Clause
// A whole RDMA network in one process and in virtual time, without packets and without dependencies: the
// world of the unit tests. Each message takes a fixed latency and its share of the sender's rate.
//
//   LoopbackFabric --owns--> LoopbackWorld (clock, alarms, stream network, devices by address)
//        | open_host                ^
//        v                          |
//   LoopbackHost (reactor, device, streams, prng) --- registers with
//
// Scope: verbs semantics of one message at a time, with every error status. Not modelled: packets, loss
// inside a message, congestion, caches of a NIC. The same seed gives the same digest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/digest.h"
#include "libbx/fabric/fabric.h"
#include "libbx/providers/loopback/heap_loop.h"
#include "libbx/providers/loopback/loopback_config.h"
#include "libbx/providers/loopback/loopback_device.h"
#include "libbx/providers/virtual/alarm.h"
#include "libbx/providers/virtual/stream_world.h"
#include "libbx/providers/virtual/virtual_streams.h"

namespace bx::loopback {

class LoopbackHost;

class LoopbackWorld {
 public:
  explicit LoopbackWorld(const LoopbackConfig& config);
  ~LoopbackWorld();
  LoopbackWorld(const LoopbackWorld&) = delete;
  LoopbackWorld& operator=(const LoopbackWorld&) = delete;

  [[nodiscard]] const LoopbackConfig& config() const noexcept { return config_; }
  [[nodiscard]] HeapLoop& loop() noexcept { return loop_; }
  [[nodiscard]] virtual_time::AlarmPool& alarms() noexcept { return alarms_; }
  [[nodiscard]] virtual_time::StreamWorld& streams() noexcept { return streams_; }
  [[nodiscard]] const Prng& prng() const noexcept { return prng_; }
  [[nodiscard]] Digest& digest() noexcept { return digest_; }

  void add_device(const fabric::Gid& gid, LoopbackDevice& device);
  void remove_device(const fabric::Gid& gid) noexcept;
  [[nodiscard]] LoopbackDevice* find_device(const fabric::Gid& gid) noexcept;  // null: nobody answers there
  // Numbers are not reused before 2^24 of them have been, so a queue pair of a closed host stays unknown.
  fabric::QpNum next_qp_number() noexcept;

 private:
  LoopbackConfig config_;
  HeapLoop loop_;
  virtual_time::AlarmPool alarms_;
  virtual_time::StreamWorld streams_;
  Prng prng_;
  Digest digest_;
  std::map<fabric::Gid, LoopbackDevice*> devices_;
  std::uint32_t next_qp_ = 0;
};

class LoopbackFabric final : public fabric::Fabric {
 public:
  explicit LoopbackFabric(const LoopbackConfig& config = {});
  ~LoopbackFabric() override;
  [[nodiscard]] std::string_view name() const noexcept override { return "loopback"; }
  // A host that was closed may be opened again: it is a new one at the same address, as after a restart.
  Result<std::unique_ptr<fabric::Host>> open_host(std::string_view host) override;

  // Over (time, queue pair, wr_id, opcode, status, length) of every completion of every host, in order.
  [[nodiscard]] std::uint64_t digest() const noexcept { return world_.digest().value(); }
  [[nodiscard]] std::uint64_t events() const noexcept { return world_.loop().executed(); }
  // Faults for tests; the host must be open.
  void set_port(std::string_view host, PortState state) noexcept;
  void fail_device(std::string_view host) noexcept;

 private:
  friend class LoopbackHost;
  struct Known {
    fabric::Gid gid{};
    std::uint32_t openings = 0;
    LoopbackHost* open = nullptr;
  };
  LoopbackHost& opened(std::string_view host) noexcept;

  mutable LoopbackWorld world_;
  std::map<std::string, Known, std::less<>> hosts_;  // every name that was ever opened
};

class LoopbackHost final : public fabric::Host {
 public:
  LoopbackHost(LoopbackFabric& fabric, std::string_view name, const fabric::Gid& gid, Prng prng);
  ~LoopbackHost() override;
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  fabric::Reactor& reactor() noexcept override { return reactor_; }
  fabric::Device& device() noexcept override { return device_; }
  fabric::StreamNetwork& streams() noexcept override { return streams_; }
  Prng& prng() noexcept override { return prng_; }
  [[nodiscard]] LoopbackDevice& loopback_device() noexcept { return device_; }

 private:
  LoopbackFabric& fabric_;
  std::string name_;
  Prng prng_;
  virtual_time::VirtualReactor reactor_;
  LoopbackDevice device_;
  virtual_time::VirtualStreams streams_;
};

}  // namespace bx::loopback
