// SPDX-License-Identifier: GPL-2.0-only
// Buffers of switches as they are configured in data centres, by name. The numbers are from public SONiC
// configurations (sonic-net/sonic-buildimage, commit 086b03b); where a file says nothing, the field of the
// profile is zero and the comment at the profile says what is assumed instead.
//
// A profile's headroom is given for 100 Gb/s ports by cable length. For a delay between the listed ones the
// next longer cable counts; for longer cables and other rates headroom_needed_bytes is used.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "libbx/base/result.h"
#include "sim/model/switch_buffer.h"
#include "sim/model/units.h"

namespace bx::sim {

struct BufferProfile {
  std::string_view name;
  std::string_view source;
  std::uint64_t total_bytes = 0;                       // shared, headroom and all
  std::uint64_t headroom_pool_bytes = 0;               // 0: each port has its own
  std::array<std::uint32_t, 3> headroom_100g_bytes{};  // cables of 5, 40 and 300 m; 0: not given
  std::uint32_t xon_floor_bytes = 0;
  std::uint32_t xon_offset_bytes = 0;
  std::int8_t alpha_log2 = 0;
};

[[nodiscard]] std::span<const BufferProfile> buffer_profiles() noexcept;
// Null if there is none of that name.
[[nodiscard]] const BufferProfile* find_buffer_profile(std::string_view name) noexcept;

// What a lossless class of a port needs by the profile.
[[nodiscard]] std::uint32_t headroom_of(const BufferProfile& profile, Rate rate, Picoseconds delay,
                                        std::uint32_t frame_bytes) noexcept;

// Sets total size, headroom pool and the thresholds of every class; which classes are lossless, the number of
// ports and their headroom stay as they are. Lossy classes get the profile's alpha too.
void apply_profile(const BufferProfile& profile, BufferConfig& buffer) noexcept;

}  // namespace bx::sim
