// SPDX-License-Identifier: GPL-2.0-only
// Asks the processor for memory before it is needed. A hint: it changes nothing, and any address will do.
#pragma once

#include <cstddef>

namespace bx::sim {

inline void prefetch(const void* address) noexcept {
  __builtin_prefetch(address);
}

// Of [from, from + bytes), where an object's beginning need not be that of a cache line.
inline void prefetch(const void* from, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < bytes; at += kLine) prefetch(static_cast<const std::byte*>(from) + at);
}

}  // namespace bx::sim
