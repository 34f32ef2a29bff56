// SPDX-License-Identifier: GPL-2.0-only
// The simulated RoCE network as a provider: hosts "host0" .. "host<N-1>" on lossless switches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/metrics.h"
#include "libbx/fabric/fabric.h"
#include "sim/model/fault_injector.h"
#include "sim/provider/sim_config.h"

namespace bx::sim {

class SimNetwork;

// One instant of the network, for time series.
struct NetworkSample {
  std::uint64_t switch_bytes = 0;            // buffered now
  std::uint64_t egress_queue_bytes_max = 0;  // the longest egress queue now
  std::uint32_t ports_paused = 0;            // host ports that the switch has paused now
  std::uint64_t pause_frames = 0;            // since start
  std::uint64_t ecn_marks = 0;
};

// What the end-of-run oracle asks. Each line of `breaches` names one broken promise with its numbers.
struct Audit {
  std::uint64_t payload_bytes_sent = 0;       // first transmissions only
  std::uint64_t payload_bytes_delivered = 0;  // accepted in order by the peer
  std::uint64_t lossless_drops = 0;
  std::uint64_t frames_under_way = 0;  // on links, in queues, in NICs
  std::vector<std::string> breaches;   // empty when all is well
};

class SimFabric final : public fabric::Fabric {
 public:
  // Errors: invalid_argument with a detail that names the field and the remedy (too little headroom, a rate
  // of 0, an MTU that is not a power of two, ...). One SimFabric at a time in a process: ns-3 is a singleton.
  static Result<std::unique_ptr<SimFabric>> create(const SimConfig& config);
  ~SimFabric() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "sim"; }
  Result<std::unique_ptr<fabric::Host>> open_host(std::string_view host) override;

  // Captures the named ports ("host3"; "leaf0:2" is a port of a switch) from now on to a pcapng file. Once.
  // Errors: invalid_argument (no such port, or the file cannot be written).
  Result<> start_capture(const std::string& path, std::span<const std::string> ports);
  // Writes out what was captured, and captures no more. Errors: exhausted with the errno, if not all of it
  // could be written. Does nothing if nothing is captured.
  Result<> end_capture();

  // The clock of the configured faults begins, once; `listener` (which may be null) is told of dying
  // processes and hosts, inside an event of no host.
  void start_faults(HostFaultListener* listener);
  [[nodiscard]] std::vector<FaultRecord> faults() const;
  [[nodiscard]] std::size_t faults_pending() const noexcept;
  // See stall_report.h.
  [[nodiscard]] std::uint64_t progress() const noexcept;
  [[nodiscard]] std::vector<std::string> describe_stall() const;

  [[nodiscard]] Instant now() const noexcept;
  [[nodiscard]] std::uint64_t events() const noexcept;
  // Over (time, kind, qp, psn, length) of every frame delivered so far.
  [[nodiscard]] std::uint64_t digest() const noexcept;
  [[nodiscard]] NetworkSample sample() const noexcept;
  // pfc.pause_frames, pfc.resume_frames, pfc.paused_time, switch.buffer_bytes_max, switch.queue_bytes_max,
  // switch.drops, switch.lossless_drops, ecn.marks, nic.packets_tx, nic.packets_rx, nic.retransmissions,
  // nic.timeouts, nic.rnr_naks, nic.sequence_naks, nic.icrc_errors, cc.cnps_tx, cc.cnps_rx, fault.*,
  // link.utilisation_max, sim.events;
  // of NIC costs, if on: nic.qpc_hits, nic.qpc_misses, nic.mtt_hits, nic.mtt_misses, nic.pcie_stalls,
  // nic.pcie_stalled_time, nic.wqe_fetches, nic.blueflames, nic.pause_frames, nic.receive_drops; of a
  // lengths-only run, sim.lengths_only.
  void report(MetricSink& sink) const;
  // Checks the network's own promises: bytes conserved, no lossless drop, no frame or work request
  // unfinished, and nothing held while all is at rest (rest_audit.h).
  [[nodiscard]] Audit audit() const;

  // What it is made of, for those who look deeper than a user does.
  [[nodiscard]] SimNetwork& network() noexcept;

  // Predictions from the configuration, for `bx show` and the scenario checks: of the link that needs most,
  // and of the switch that host0 is on (0 for a configuration that has no plan).
  [[nodiscard]] static std::uint64_t headroom_needed_bytes(const SimConfig& config) noexcept;
  // Bytes buffered per ingress when `active_ingress_ports` fill one egress and the first pause frame is due:
  // x = alpha B' / (1 + alpha N).
  [[nodiscard]] static std::uint64_t xoff_onset_bytes(const SimConfig& config,
                                                      std::uint32_t active_ingress_ports) noexcept;

 private:
  struct Impl;
  explicit SimFabric(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bx::sim
