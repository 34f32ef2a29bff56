// SPDX-License-Identifier: GPL-2.0-only
// Everything about a simulated network that a scenario may set, in plain units. Defaults are those of a 100
// Gb/s cluster with a 32 MiB shared-buffer switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libbx/providers/virtual/host_cpu.h"
#include "sim/model/engine.h"
#include "sim/model/fault_plan.h"
#include "sim/model/switch.h"
#include "sim/provider/congestion_spec.h"
#include "sim/provider/nic_spec.h"
#include "sim/provider/topology_spec.h"

namespace bx::sim {

struct PfcConfig {
  bool enabled = true;
  // Bytes kept per ingress port and lossless priority for what arrives after XOFF; 0 computes what rate,
  // delay and MTU need (802.1Qbb Annex O shape, see headroom_needed_bytes).
  std::uint64_t headroom_bytes = 0;
  std::uint64_t xon_offset_bytes = 4096;  // resume when the queue is this far under the XOFF threshold
  std::uint16_t quanta = 65535;           // of each pause frame, in 512 bit times
  std::string watchdog = "off";           // off, drop, forward
  std::uint64_t watchdog_detect_ns = 200'000'000;
  std::uint64_t watchdog_restore_ns = 200'000'000;
  std::uint64_t watchdog_poll_ns = 200'000'000;
};

struct EcnMarkingConfig {
  bool enabled = true;
  std::uint64_t kmin_bytes = 100 * 1024;
  std::uint64_t kmax_bytes = 400 * 1024;
  double pmax = 0.2;
  std::string mark_at = "enqueue";  // or dequeue, see EcnPoint
};

struct SwitchBufferConfig {
  std::uint64_t bytes = 32ULL << 20U;   // shared pool, reserved and headroom included
  std::uint64_t reserved_bytes = 4096;  // guaranteed per ingress port and priority
  // Dynamic threshold alpha = 2^alpha_log2 of the free shared pool (public switch profiles use -1..0, HPCC's
  // model -3).
  int alpha_log2 = -3;
  std::uint8_t lossless_priorities = 1U << 3U;  // bit p: priority p is lossless
  // One of buffer_profiles(): its sizes and thresholds take the place of those here, of the headroom and of
  // the XON offset. "none": these.
  std::string profile = "none";
};

struct SwitchSchedulingConfig {
  Weights weights{};         // see switch_scheduler.h
  PriorityMap priorities{};  // see switch.h
};

struct SimConfig {
  std::uint32_t hosts = 2;
  std::uint64_t rate_bps = 100'000'000'000;
  std::uint64_t delay_ns = 1000;  // one way, each link of a host
  std::uint32_t mtu = 4096;       // RoCE path MTU, payload bytes
  PfcConfig pfc{};
  EcnMarkingConfig ecn{};
  SwitchBufferConfig buffer{};
  SwitchSchedulingConfig scheduling{};
  TopologySpec topology{};
  CongestionSpec congestion{};
  std::vector<FaultSpec> faults{};  // see fault_plan.h; they begin with SimFabric::start_faults()
  NicSpec nic{};
  std::string payload = "moved";  // or "lengths": of each message only its first payload_kept_bytes are moved
  std::uint64_t payload_kept_bytes = 4096;
  std::uint64_t nic_tx_latency_ns = 300;  // doorbell to first bit: doorbell, WQE and payload fetch over PCIe
  std::uint64_t nic_rx_latency_ns = 300;  // last bit to visible completion: DMA write and CQE write-back
  std::string loss_recovery = "go-back-n";  // or selective-repeat; this and the next: loss_recovery.h
  std::uint32_t recovery_window = 256;      // packets
  std::uint32_t ack_every = 0;
  std::uint64_t ack_delay_ns = 4000;
  std::uint64_t message_bytes_max = 1ULL << 30U;  // of one work request
  virtual_time::HostCpuCosts cpu{};
  EngineKind engine = EngineKind::fast;
  // Traffic of the model alone (RawTraffic) can be simulated in several partitions, see
  // sim/model/partitions.h, on up to so many threads. The first is part of the run and of its digest, the
  // second is not.
  std::size_t partitions = 1;
  std::size_t threads = 1;
  std::uint64_t seed = 1;
};

}  // namespace bx::sim
