// SPDX-License-Identifier: GPL-2.0-only
// What a NIC's work costs beyond the wire: configuration with named profiles, and the state of one NIC's PCIe
// bus, caches and late writes (NicCosts). NicPipeline turns it into time. A NIC without costs has neither,
// and its two latencies (NicConfig) stand for all of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libbx/base/result.h"
#include "sim/model/context_cache.h"
#include "sim/model/engine.h"
#include "sim/model/frame.h"
#include "sim/model/late_dma.h"
#include "sim/model/memory_table.h"
#include "sim/model/pcie_bus.h"
#include "sim/model/units.h"

namespace bx::sim {

inline constexpr std::uint32_t kUnitsMax = 16;

struct CacheConfig {
  std::uint32_t entries = 0;  // 0: everything hits
};

struct NicCostConfig {
  bool enabled = false;
  PcieConfig pcie{};
  // A posted write of the processor to the NIC.
  Picoseconds doorbell{};
  // One PCIe read brings up to so many send-queue entries.
  std::uint32_t wqe_bytes = 64;
  std::uint32_t wqes_per_fetch = 8;
  // A doorbell for one inline entry of at most so many bytes brings the entry itself (BlueFlame); 0: never.
  std::uint32_t blueflame_bytes = 0;
  std::uint32_t cqe_bytes = 64;
  // Processing: `units` of them each way, together `packets_per_second` (0: no limit). A miss holds up its
  // unit for a PCIe read's latency.
  std::uint32_t units = 1;
  std::uint64_t packets_per_second = 0;
  CacheConfig queue_pairs{};
  CacheConfig translations{};
  std::uint64_t page_bytes = 4096;  // of the memory that is translated: 4 KiB, or 2 MiB (huge pages)
  // Bytes reach memory when the bus has written them, and not with the packet's arrival.
  bool late_dma = false;
  // Frames of a priority that are made and wait for their bytes or the port.
  std::uint32_t staged_max = 64;
  // Received bytes that wait for a unit. From xoff on the NIC pauses the switch, for each priority apart.
  std::uint64_t receive_buffer_bytes = 1U << 20U;
  std::uint64_t receive_xoff_bytes = 1U << 18U;
};

// Errors: invalid_argument with a detail that names the field.
[[nodiscard]] Result<> check_costs(const NicCostConfig& config);
// "none" (off), "ideal" (nothing costs anything) and "connectx5"; null for an unknown name. The sources of
// its numbers stand beside them.
[[nodiscard]] const NicCostConfig* find_nic_profile(std::string_view name) noexcept;

struct NicCostCounters {
  std::uint64_t wqe_fetches = 0;
  std::uint64_t blueflames = 0;
  std::uint64_t receive_drops = 0;  // frames that found the receive buffer full
  std::uint64_t pause_frames = 0;   // sent by the NIC
};

// Used by the two halves of queue pairs while they make or take one packet, and by the pipeline around them.
class NicCosts {
 public:
  NicCosts(Engine& engine, FramePool& frames, const MemoryTable& memory, const NicCostConfig& config);

  // --- For the halves of queue pairs.
  // The packet that is being made takes `bytes` from local memory at `offset` into the segments, or at an
  // address; their keys cover it.
  void gathers(std::span<const Segment> segments, std::uint64_t offset, std::uint32_t bytes);
  void gathers(std::uint32_t rkey, std::uint64_t addr, std::uint32_t bytes);
  // What a packet brings is written. The keys have been checked.
  // `late`, unless null, are the bytes, which are not in memory yet and will be when the bus has written
  // them.
  void scatters(std::span<const Segment> segments, std::uint64_t offset, std::uint32_t bytes,
                const std::byte* late);
  void writes(std::uint32_t rkey, std::uint64_t addr, std::uint32_t bytes, const std::byte* late);
  // All that is on its way to memory is there: a read does not pass it.
  void land_writes() { late_.land_all(); }
  void land_due_writes() { late_.land_due(); }
  // When a completion that is written now can be polled.
  Picoseconds completion_at();

  // --- For the pipeline.
  // A packet of this queue pair is made or taken: the time that its context takes to come.
  Picoseconds begin_packet(std::uint32_t qp);
  // It is made or taken: how long misses held it up, `context` and those of translations, and when the bytes
  // that it takes from memory are there.
  struct Made {
    Picoseconds held{};
    Picoseconds bytes_at{};
  };
  Made end_packet(Picoseconds context);
  // When the WQEs of a fetch of `count` are at the NIC, from a doorbell at `now`.
  Picoseconds fetch_at(Picoseconds now, std::uint32_t count);
  Picoseconds blueflame_at(Picoseconds now);
  void forget_queue_pair(std::uint32_t qp) { queue_pairs_.forget(qp); }

  [[nodiscard]] const NicCostConfig& config() const noexcept { return config_; }
  [[nodiscard]] const PcieBus& bus() const noexcept { return bus_; }
  [[nodiscard]] const ContextCache& queue_pairs() const noexcept { return queue_pairs_; }
  [[nodiscard]] const ContextCache& translations() const noexcept { return translations_; }
  NicCostCounters counters{};

 private:
  void translate(std::uint32_t key, std::uint64_t addr, std::uint64_t bytes);
  [[nodiscard]] Picoseconds write_at(std::uint32_t key, std::uint64_t addr, std::uint64_t bytes);

  Engine& engine_;
  const MemoryTable& memory_;
  NicCostConfig config_;
  PcieBus bus_;
  ContextCache queue_pairs_;
  ContextCache translations_;
  LateDma late_;
  Picoseconds held_{};          // by misses of the packet that is being made or taken
  std::uint64_t gathered_ = 0;  // bytes it takes from memory
};

}  // namespace bx::sim
