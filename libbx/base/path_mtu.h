// SPDX-License-Identifier: BSD-3-Clause
// The path MTUs that there are (IBA 1.4, 9.6.1; ibv_mtu): payload bytes of a packet.
#pragma once

#include <bit>
#include <cstdint>

namespace bx {

constexpr bool is_path_mtu(std::uint32_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= 256 && bytes <= 4096;
}

}  // namespace bx
