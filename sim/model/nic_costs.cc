// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/nic_costs.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/model/named.h"

namespace bx::sim {
namespace {

// A ConnectX-5 on PCIe 3.0 x16. "Assumed" marks what no public source says.
constexpr NicCostConfig kConnectX5{
    .enabled = true,
    .pcie =
        {
            // 16 lanes of 8 GT/s with 128b/130b encoding (PCI Express Base Specification 3.0, 4.2.2).
            .rate = {16ULL * 8'000'000'000ULL * 128 / 130},
            // Of the order that Neugebauer et al. measure for small DMA reads on Xeon hosts ("Understanding
            // PCIe performance for end host networking", SIGCOMM 2018, section 6): about half a microsecond.
            .read_latency = nanoseconds{500},
            .write_latency = nanoseconds{250},  // assumed: one way of such a round trip
            .payload_max = 256,                 // what servers negotiate (ibid., section 3)
                                 // Framing, sequence number, header of three or four words, and LCRC: five to
                                 // seven words (Intel AN 708).
            .tlp_overhead = 24,
        },
    .doorbell = nanoseconds{250},  // assumed: one way of a round trip
    .wqe_bytes = 64,               // MLX5_SEND_WQE_BB (Linux, include/linux/mlx5/qp.h)
    .wqes_per_fetch = 8,           // assumed
    .blueflame_bytes = 192,  // assumed: a BlueFlame register of 256 B, less control and address segments
    .cqe_bytes = 64,         // struct mlx5_cqe64 (Linux, include/linux/mlx5/device.h)
    .units = 8,              // assumed: misses overlap to some degree
    .packets_per_second = 200'000'000,  // messages a second of the product brief
    // About 375 B a connection in about 2 MB on the NIC (Kalia et al., "Datacenter RPCs can be General and
    // Fast", NSDI 2019, section 2).
    .queue_pairs = {5592},
    .translations = {65536},  // assumed: 256 MiB of 4 KiB pages
    .page_bytes = 4096,
    .late_dma = true,
};
constexpr NicCostConfig kNone{};
constexpr NicCostConfig kIdeal{.enabled = true};
struct NamedCosts {
  std::string_view name;
  const NicCostConfig* costs;
};
constexpr std::array<NamedCosts, 3> kProfiles{
    {{"none", &kNone}, {"ideal", &kIdeal}, {"connectx5", &kConnectX5}}};

constexpr Picoseconds kLatencyMax = milliseconds{1};
constexpr std::uint32_t kEntriesMax = 1U << 24U;

const char* fault_of(const NicCostConfig& config) noexcept {
  const PcieConfig& pcie = config.pcie;
  for (const Picoseconds time : {pcie.read_latency, pcie.write_latency, config.doorbell}) {
    if (time.count() < 0 || time > kLatencyMax) return "nic: PCIe and doorbell latencies are 0 to 1 ms";
  }
  if (pcie.payload_max == 0 || pcie.payload_max > 4096) return "nic.pcie_payload: give 1 to 4096 bytes";
  if (config.wqes_per_fetch == 0) return "nic.wqes_per_fetch: give at least 1";
  if (config.units == 0 || config.units > kUnitsMax) return "nic.units: give 1 to 16";
  if (config.queue_pairs.entries > kEntriesMax || config.translations.entries > kEntriesMax) {
    return "nic: caches have at most 16777216 entries";
  }
  if (!std::has_single_bit(config.page_bytes) || config.page_bytes < 4096) {
    return "nic.page: give a power of two from 4 KiB on";
  }
  if (config.staged_max == 0 || config.staged_max > 4096) return "nic.staged: give 1 to 4096 frames";
  if (config.receive_buffer_bytes < 2 * kFrameBytesMax ||
      config.receive_xoff_bytes > config.receive_buffer_bytes || config.receive_xoff_bytes == 0) {
    return "nic.receive_buffer: give room for two frames, and an xoff within it";
  }
  return nullptr;
}

}  // namespace

Result<> check_costs(const NicCostConfig& config) {
  if (!config.enabled) return {};
  if (const char* fault = fault_of(config); fault != nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, fault);
  }
  return {};
}

const NicCostConfig* find_nic_profile(std::string_view name) noexcept {
  const NamedCosts* found = find_named(kProfiles, name, &NamedCosts::name);
  return found == nullptr ? nullptr : found->costs;
}

NicCosts::NicCosts(Engine& engine, FramePool& frames, const MemoryTable& memory, const NicCostConfig& config)
    : engine_(engine),
      memory_(memory),
      config_(config),
      bus_(config.pcie),
      queue_pairs_(config.queue_pairs.entries),
      translations_(config.translations.entries),
      late_(engine, frames, memory) {}

// Pages are looked up one by one; misses of one packet follow each other. They are counted from the region's
// begin, as if that were the begin of a page: the addresses themselves are the process's and differ between
// runs.
void NicCosts::translate(std::uint32_t key, std::uint64_t addr, std::uint64_t bytes) {
  if (config_.translations.entries == 0 || bytes == 0) return;
  const int shift = std::countr_zero(config_.page_bytes);
  const std::uint64_t region = std::uint64_t{key & MemoryTable::kKeyMask} << 32U;
  const std::uint64_t begin = memory_.offset_in_region(key, addr);
  for (std::uint64_t page = begin >> shift; page <= (begin + bytes - 1) >> shift; ++page) {
    if (!translations_.touch(region | page)) held_ += config_.pcie.read_latency;
  }
}

void NicCosts::gathers(std::span<const Segment> segments, std::uint64_t offset, std::uint32_t bytes) {
  land_writes();
  visit_pieces(segments, offset, bytes, [&](std::uint32_t key, std::uint64_t addr, std::uint64_t count) {
    if (memory_.covers(key, addr, count, MemoryAccess::local_read)) translate(key, addr, count);
  });
  gathered_ += bytes;
}

void NicCosts::gathers(std::uint32_t rkey, std::uint64_t addr, std::uint32_t bytes) {
  land_writes();
  translate(rkey, addr, bytes);
  gathered_ += bytes;
}

Picoseconds NicCosts::write_at(std::uint32_t key, std::uint64_t addr, std::uint64_t bytes) {
  translate(key, addr, bytes);
  return bus_.write(engine_.now() + held_, bytes);
}

void NicCosts::scatters(std::span<const Segment> segments, std::uint64_t offset, std::uint32_t bytes,
                        const std::byte* late) {
  visit_pieces(segments, offset, bytes, [&](std::uint32_t key, std::uint64_t addr, std::uint64_t count) {
    const Picoseconds there = write_at(key, addr, count);
    if (late == nullptr) return;
    late_.write(there, key, addr, {late, count}, MemoryAccess::local_write);
    late += count;
  });
}

void NicCosts::writes(std::uint32_t rkey, std::uint64_t addr, std::uint32_t bytes, const std::byte* late) {
  const Picoseconds there = write_at(rkey, addr, bytes);
  if (late != nullptr) late_.write(there, rkey, addr, {late, bytes}, MemoryAccess::remote_write);
}

Picoseconds NicCosts::completion_at() {
  return bus_.write(engine_.now() + held_, config_.cqe_bytes);
}

Picoseconds NicCosts::begin_packet(std::uint32_t qp) {
  return queue_pairs_.touch(qp) ? Picoseconds{0} : config_.pcie.read_latency;
}

NicCosts::Made NicCosts::end_packet(Picoseconds context) {
  Made made{.held = context + held_, .bytes_at = engine_.now()};
  if (gathered_ > 0) made.bytes_at = bus_.read(engine_.now() + made.held, gathered_);
  held_ = Picoseconds{0};
  gathered_ = 0;
  return made;
}

Picoseconds NicCosts::fetch_at(Picoseconds now, std::uint32_t count) {
  ++counters.wqe_fetches;
  return bus_.read(now + config_.doorbell, std::uint64_t{count} * config_.wqe_bytes);
}

Picoseconds NicCosts::blueflame_at(Picoseconds now) {
  ++counters.blueflames;
  return now + config_.doorbell;
}

}  // namespace bx::sim
