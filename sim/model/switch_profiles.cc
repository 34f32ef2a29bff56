// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/switch_profiles.h"

#include <algorithm>
#include <cstddef>

#include "sim/model/named.h"

namespace bx::sim {
namespace {

constexpr std::uint64_t kHundredGigabits = 100'000'000'000;
// Light in a cable takes 5 ns a metre.
constexpr std::array<Picoseconds, 3> kCables{nanoseconds{25}, nanoseconds{200}, nanoseconds{1500}};

constexpr std::array<BufferProfile, 5> kProfiles{{
    {.name = "td2",
     .source = "sonic-buildimage device/common/profiles/td2/gen/RDMA-CENTRIC (pool 12.77 MB)",
     .total_bytes = 12'770'000,
     .headroom_100g_bytes = {47216, 52624, 91728},
     .xon_floor_bytes = 18432,
     .xon_offset_bytes = 2496,
     .alpha_log2 = -1},
    // Ingress lossless pool and headroom pool are given apart; together they are the total.
    {.name = "th",
     .source = "sonic-buildimage device/common/profiles/th/6100/RDMA-CENTRIC",
     .total_bytes = 10'875'072 + 4'194'112,
     .headroom_pool_bytes = 4'194'112,
     .headroom_100g_bytes = {165568, 177632, 268736},
     .xon_floor_bytes = 2288,
     .xon_offset_bytes = 2288,
     .alpha_log2 = 0},
    // The egress lossless pool is the whole buffer, headroom included.
    {.name = "th2",
     .source = "sonic-buildimage device/common/profiles/th2/7260/RDMA-CENTRIC",
     .total_bytes = 43'481'152,
     .headroom_pool_bytes = 8'965'632,
     .headroom_100g_bytes = {54080, 59696, 101088},
     .xon_floor_bytes = 1248,
     .xon_offset_bytes = 2496,
     .alpha_log2 = 0},
    {.name = "td3",
     .source = "sonic-buildimage device/arista Arista-7050CX3-32S-C32/BALANCED",
     .total_bytes = 32'732'160 + 1'622'016,
     .headroom_pool_bytes = 1'622'016,
     .headroom_100g_bytes = {160000, 160000, 160000},
     .xon_floor_bytes = 4608,
     .xon_offset_bytes = 4608,
     .alpha_log2 = 0},
    // The file gives no pool size; 16 MB is the packet buffer of the ASIC (assumed). It gives no hysteresis.
    {.name = "spectrum",
     .source = "sonic-buildimage device/mellanox ACS-MSN2700 (pool size assumed: 16 MiB)",
     .total_bytes = 16ULL << 20U,
     .headroom_100g_bytes = {30720, 38912, 0},
     .xon_floor_bytes = 19456,
     .alpha_log2 = 0},
}};

}  // namespace

std::span<const BufferProfile> buffer_profiles() noexcept {
  return kProfiles;
}

const BufferProfile* find_buffer_profile(std::string_view name) noexcept {
  return find_named(kProfiles, name, &BufferProfile::name);
}

std::uint32_t headroom_of(const BufferProfile& profile, Rate rate, Picoseconds delay,
                          std::uint32_t frame_bytes) noexcept {
  if (rate.bits_per_second == kHundredGigabits) {
    for (std::size_t i = 0; i < kCables.size(); ++i) {
      if (delay <= kCables[i] && profile.headroom_100g_bytes[i] != 0) return profile.headroom_100g_bytes[i];
    }
  }
  const std::uint64_t needed = headroom_needed_bytes(
      {.rate = rate, .delay = delay, .own_frame_bytes = frame_bytes, .peer_frame_bytes = frame_bytes});
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, UINT32_MAX));
}

void apply_profile(const BufferProfile& profile, BufferConfig& buffer) noexcept {
  buffer.total_bytes = profile.total_bytes;
  buffer.headroom_pool_bytes = profile.headroom_pool_bytes;
  for (ClassBufferConfig& c : buffer.classes) {
    c.alpha_log2 = profile.alpha_log2;
    if (!c.lossless) continue;
    c.xon_floor_bytes = profile.xon_floor_bytes;
    c.xon_offset_bytes = profile.xon_offset_bytes;
  }
}

}  // namespace bx::sim
