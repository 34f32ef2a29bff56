// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/network_audit.h"

#include <algorithm>
#include <array>
#include <string>

#include "sim/provider/rest_audit.h"

namespace bx::sim {
namespace {

NicCounters total_counters(const SimNetwork& network) noexcept {
  NicCounters total;
  for (std::size_t i = 0; i < network.nics(); ++i) {
    const NicCounters& c = network.nic_at(i).counters();
    total.packets_tx += c.packets_tx;
    total.packets_rx += c.packets_rx;
    total.packets_retransmitted += c.packets_retransmitted;
    total.timeouts += c.timeouts;
    total.rnr_naks_tx += c.rnr_naks_tx;
    total.icrc_errors += c.icrc_errors;
    total.sequence_naks_tx += c.sequence_naks_tx;
    total.queue_pairs_failed += c.queue_pairs_failed;
    total.cnps_tx += c.cnps_tx;
    total.cnps_rx += c.cnps_rx;
    total.payload_bytes_sent += c.payload_bytes_sent;
    total.payload_bytes_delivered += c.payload_bytes_delivered;
  }
  return total;
}

void count(MetricSink& sink, std::string_view name, std::uint64_t value) {
  sink.metric(name, static_cast<double>(value), "count");
}

void report_costs(const SimNetwork& network, MetricSink& sink) {
  NicCostCounters total;
  std::array<std::uint64_t, 6> sums{};  // hits and misses of both caches, waits for the bus and their time
  for (std::size_t number = 0; number < network.nics(); ++number) {
    const NicCosts* costs = network.nic_at(number).costs();
    if (costs == nullptr) return;
    total.wqe_fetches += costs->counters.wqe_fetches;
    total.blueflames += costs->counters.blueflames;
    total.receive_drops += costs->counters.receive_drops;
    total.pause_frames += costs->counters.pause_frames;
    const PcieCounters& bus = costs->bus().counters();
    const std::array<std::uint64_t, 6> own{costs->queue_pairs().hits(),
                                           costs->queue_pairs().misses(),
                                           costs->translations().hits(),
                                           costs->translations().misses(),
                                           bus.stalls,
                                           static_cast<std::uint64_t>(bus.stalled.count())};
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += own[i];
  }
  count(sink, "nic.qpc_hits", sums[0]);
  count(sink, "nic.qpc_misses", sums[1]);
  count(sink, "nic.mtt_hits", sums[2]);
  count(sink, "nic.mtt_misses", sums[3]);
  count(sink, "nic.pcie_stalls", sums[4]);
  sink.metric("nic.pcie_stalled_time", static_cast<double>(sums[5]) * 1e-3, "ns");
  count(sink, "nic.wqe_fetches", total.wqe_fetches);
  count(sink, "nic.blueflames", total.blueflames);
  count(sink, "nic.pause_frames", total.pause_frames);
  count(sink, "nic.receive_drops", total.receive_drops);
}

// Of the busiest direction of any host's link, from the start to the last frame: a run may go on long after
// it, waiting for timers that come to nothing.
double utilisation_max(const SimNetwork& network) noexcept {
  Picoseconds last{};
  double share = 0;  // bits sent or received, in seconds of the link's rate
  for (std::size_t host = 0; host < network.hosts(); ++host) {
    const Port& port = network.port(host);
    const std::uint64_t bytes = std::max(port.counters().tx_bytes, port.counters().rx_bytes);
    share =
        std::max(share, static_cast<double>(bytes) * 8 / static_cast<double>(port.rate().bits_per_second));
    last = std::max(last, network.nic(host).last_arrival());
  }
  return last.count() == 0 ? 0 : share / (static_cast<double>(last.count()) * 1e-12);
}

double paused_ns(const SimNetwork& network) noexcept {
  Picoseconds total{};
  for (std::size_t host = 0; host < network.hosts(); ++host) total += network.port(host).paused_time();
  return static_cast<double>(total.count()) * 1e-3;
}

std::uint64_t longest_egress_queue(const Switch& fabric) noexcept {
  std::uint64_t longest = 0;
  for (std::uint16_t port = 0; port < fabric.ports(); ++port) {
    std::uint64_t queued = 0;
    for (std::uint8_t p = 0; p < kPriorities; ++p) queued += fabric.queue(port, p).bytes;
    longest = std::max(longest, queued);
  }
  return longest;
}

// What a NIC has left undone, by its first host. A run that is over has nothing of it.
void audit_nic(const Nic& nic, std::vector<std::string>& breaches) {
  const NicAudit a = nic.audit();
  if (a.at_rest()) return;
  breaches.push_back("host" + std::to_string(nic.config().host) +
                     ": unfinished work: " + std::to_string(a.sends_outstanding) + " send requests, " +
                     std::to_string(a.responders_busy) + " responders, " + std::to_string(a.timers_armed) +
                     " timers, " + std::to_string(a.sources_scheduled) + " transmitters, " +
                     std::to_string(a.unacknowledged) + " queue pairs without their acknowledgement, " +
                     std::to_string(a.pipelines_busy) + " pipelines");
}

// A fault still keeps frames from moving on, as it is meant to.
bool held_up(const SimNetwork& network) {
  if (network.faults() == nullptr) return false;
  const std::vector<FaultRecord> records = network.faults()->records();
  return std::any_of(records.begin(), records.end(), [](const FaultRecord& fault) {
    const FaultKind kind = fault.spec.kind;
    return fault.began && !fault.ended &&
           (kind == FaultKind::pause_storm || kind == FaultKind::slow_receiver);
  });
}

}  // namespace

NetworkSample sample_network(SimNetwork& network) {
  const SwitchTotals totals = network.topology().totals();
  NetworkSample sample{.pause_frames = totals.pause_frames, .ecn_marks = totals.ecn_marks};
  for (std::size_t i = 0; i < network.topology().switches(); ++i) {
    Switch& fabric = network.topology().switch_at(i);
    sample.switch_bytes += fabric.buffer().used_bytes();
    sample.egress_queue_bytes_max = std::max(sample.egress_queue_bytes_max, longest_egress_queue(fabric));
  }
  for (std::size_t host = 0; host < network.hosts(); ++host) {
    sample.ports_paused += network.port(host).paused_mask() != 0 ? 1 : 0;
  }
  return sample;
}

namespace {

// What the faults of the run hit; zeros when there are none, so that an expectation can say so.
void report_faults(const SimNetwork& network, MetricSink& sink) {
  std::uint64_t begun = 0;
  std::uint64_t lost = 0;
  std::uint64_t late = 0;
  std::uint64_t marked = 0;
  std::uint64_t corrupted = 0;
  const FaultInjector* faults = network.faults();
  for (const FaultRecord& fault : faults == nullptr ? std::vector<FaultRecord>{} : faults->records()) {
    begun += fault.began ? 1 : 0;
    switch (fault.spec.kind) {
      case FaultKind::loss:
      case FaultKind::drop:
      case FaultKind::black_hole:
      case FaultKind::cnp_loss:
      case FaultKind::pause_loss:
      case FaultKind::host_crash:
        lost += fault.hits;
        break;
      case FaultKind::reorder:
      case FaultKind::delay:
        late += fault.hits;
        break;
      case FaultKind::ecn_mark:
        marked += fault.hits;
        break;
      case FaultKind::corrupt:
        corrupted += fault.hits;
        break;
      default:
        break;
    }
  }
  count(sink, "fault.begun", begun);
  count(sink, "fault.packets_lost", lost);
  count(sink, "fault.packets_late", late);
  count(sink, "fault.packets_marked", marked);
  count(sink, "fault.packets_corrupted", corrupted);
}

}  // namespace

void report_network(const SimNetwork& network, MetricSink& sink) {
  sim::report(network.topology().totals(), sink);
  const NicCounters nics = total_counters(network);
  sink.metric("pfc.paused_time", paused_ns(network), "ns");
  count(sink, "nic.packets_tx", nics.packets_tx);
  count(sink, "nic.packets_rx", nics.packets_rx);
  count(sink, "nic.retransmissions", nics.packets_retransmitted);
  count(sink, "nic.timeouts", nics.timeouts);
  count(sink, "nic.rnr_naks", nics.rnr_naks_tx);
  count(sink, "nic.sequence_naks", nics.sequence_naks_tx);
  count(sink, "cc.cnps_tx", nics.cnps_tx);
  count(sink, "cc.cnps_rx", nics.cnps_rx);
  count(sink, "nic.icrc_errors", nics.icrc_errors);
  report_faults(network, sink);
  report_costs(network, sink);
  if (network.config().payload == "lengths") sink.metric("sim.lengths_only", 1, "ratio");
  sink.metric("link.utilisation_max", utilisation_max(network), "ratio");
  count(sink, "sim.events", network.engine().events());
}

Audit audit_network(SimNetwork& network) {
  const NicCounters nics = total_counters(network);
  const SwitchTotals totals = network.topology().totals();
  Audit audit{.payload_bytes_sent = nics.payload_bytes_sent,
              .payload_bytes_delivered = nics.payload_bytes_delivered,
              .lossless_drops = totals.lossless_drops,
              .frames_under_way = network.topology().partitions().frames_in_use(),
              .breaches = {}};
  // A failed queue pair may have sent what nobody took; nothing may ever take what was not sent.
  const bool lost = nics.payload_bytes_delivered < nics.payload_bytes_sent && nics.queue_pairs_failed == 0;
  if (lost || nics.payload_bytes_delivered > nics.payload_bytes_sent) {
    audit.breaches.push_back("bytes are not conserved: " + std::to_string(nics.payload_bytes_sent) +
                             " sent, " + std::to_string(nics.payload_bytes_delivered) + " delivered");
  }
  if (totals.lossless_drops != 0) {
    audit.breaches.push_back(std::to_string(totals.lossless_drops) + " frames of a lossless class dropped");
  }
  for (std::size_t i = 0; i < network.nics(); ++i) audit_nic(network.nic_at(i), audit.breaches);
  if (held_up(network)) return audit;
  if (network.topology().partitions().frames_in_use() != 0) {
    audit.breaches.push_back(std::to_string(network.topology().partitions().frames_in_use()) +
                             " frames still under way");
  } else {
    audit_rest(network, audit.breaches);
  }
  return audit;
}

}  // namespace bx::sim
