// SPDX-License-Identifier: GPL-2.0-only
// A NIC's way to the memory of its host. Two directions, each a pipe of a rate: what a write carries goes up,
// what a read brings comes down after the latency of the round trip. A transfer is cut into TLPs of at most
// `payload_max` bytes with `tlp_overhead` bytes around each. Transfers of one direction follow each other in
// the order of the calls; latencies overlap, bytes do not.
//
//   read:  now --latency--> [bytes, after those before them] --> there
//   write: now --> [bytes, after those before them] --latency--> visible to software
//
// Posted writes keep their order, so a completion that is written after a payload is seen after it. The
// requests of reads are not charged to the way up, and the number of reads under way is bounded by who asks
// (NicPipeline's staging), not by tags.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/model/units.h"

namespace bx::sim {

struct PcieConfig {
  Rate rate{};  // each direction, after line encoding; 0: infinitely fast
  Picoseconds read_latency{};
  Picoseconds write_latency{};
  std::uint32_t payload_max = 256;
  std::uint32_t tlp_overhead = 24;
};

struct PcieCounters {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t stalls = 0;  // transfers that waited for those before them
  Picoseconds stalled{};     // in all
};

class PcieBus {
 public:
  explicit PcieBus(const PcieConfig& config) noexcept
      : config_(config), down_{Serialiser(config.rate), {}}, up_{Serialiser(config.rate), {}} {}

  // When the last byte is at the NIC.
  Picoseconds read(Picoseconds now, std::uint64_t bytes) noexcept {
    ++counters_.reads;
    return transfer(down_, now + config_.read_latency, bytes);
  }
  // When software sees the last byte. Never earlier than for the write before.
  Picoseconds write(Picoseconds now, std::uint64_t bytes) noexcept {
    ++counters_.writes;
    return transfer(up_, now, bytes) + config_.write_latency;
  }
  // When the way up is free.
  [[nodiscard]] Picoseconds writes_until() const noexcept { return up_.free_at; }
  [[nodiscard]] const PcieConfig& config() const noexcept { return config_; }
  [[nodiscard]] const PcieCounters& counters() const noexcept { return counters_; }

 private:
  struct Pipe {
    Serialiser serialiser;
    Picoseconds free_at{};
  };
  [[nodiscard]] std::uint64_t with_overhead(std::uint64_t bytes) const noexcept {
    const std::uint64_t tlps =
        std::max<std::uint64_t>(1, (bytes + config_.payload_max - 1) / config_.payload_max);
    return bytes + tlps * config_.tlp_overhead;
  }
  Picoseconds transfer(Pipe& pipe, Picoseconds from, std::uint64_t bytes) noexcept {
    if (pipe.free_at > from) {
      ++counters_.stalls;
      counters_.stalled += pipe.free_at - from;
      from = pipe.free_at;
    }
    const bool timed = config_.rate.bits_per_second != 0;
    pipe.free_at = from + (timed ? pipe.serialiser.time_for(with_overhead(bytes)) : Picoseconds{0});
    return pipe.free_at;
  }

  PcieConfig config_;
  Pipe down_;
  Pipe up_;
  PcieCounters counters_;
};

}  // namespace bx::sim
