// SPDX-License-Identifier: BSD-3-Clause
// Sizes around every boundary of a worker with the limits of tiny() (world.h), in an order that repeats late.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bx::testing {

inline std::size_t mixed(std::uint64_t n) {
  constexpr std::array<std::size_t, 8> kSizes = {0, 1, 200, 256, 257, 4097, 20'000, 70'001};
  return kSizes[(n * 5 + n / 7) % kSizes.size()];
}

}  // namespace bx::testing
