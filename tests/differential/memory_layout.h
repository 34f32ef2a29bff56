// SPDX-License-Identifier: BSD-3-Clause
// The memory of one side of a program (see program.h) and what stands in it: a pattern that depends on side
// and position only, so that it is the same wherever the program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/differential/program.h"

namespace bx::differential {

class SideMemory {
 public:
  explicit SideMemory(Side side);

  [[nodiscard]] std::span<std::byte> region(std::size_t region) noexcept;
  [[nodiscard]] std::span<std::byte> slot(std::size_t region, std::size_t slot) noexcept;
  // The address that a place means, its bounds as it says; `length` is that of the access.
  [[nodiscard]] std::uint64_t address(const Place& place, std::uint32_t length) noexcept;
  void fill_all() noexcept;
  void fill(std::size_t region, std::size_t slot) noexcept;
  // A digest a slot, in the order of regions; the last one is of all guard bytes.
  [[nodiscard]] std::vector<std::uint64_t> digests() noexcept;

 private:
  void fill(std::span<std::byte> bytes) noexcept;

  Side side_;
  std::vector<std::byte> bytes_;
};

constexpr std::size_t slots_of(std::size_t region) noexcept {
  return region == 0 ? kReceiveSlots : kSlots;
}
// Which of the digests is that of a place's slot.
constexpr std::size_t digest_of(const Place& place) noexcept {
  std::size_t at = place.slot;
  for (std::size_t i = 0; i < place.region; ++i) at += slots_of(i);
  return at;
}

}  // namespace bx::differential
