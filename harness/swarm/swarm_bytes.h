// SPDX-License-Identifier: GPL-2.0-only
// Bytes that depend on their place and on a salt, so that a misplaced or missing part shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace bx::harness {

inline std::byte pattern(std::size_t i, std::uint64_t salt) {
  return static_cast<std::byte>((i * 131 + (i >> 8U) * 17 + salt * 29 + 7) & 0xffU);
}

inline void fill(std::span<std::byte> bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(i, salt);
}

inline bool is_filled(std::span<const std::byte> bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(i, salt)) return false;
  }
  return true;
}

}  // namespace bx::harness
