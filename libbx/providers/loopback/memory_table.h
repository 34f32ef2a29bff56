// SPDX-License-Identifier: BSD-3-Clause
// The registered memory of one device: from a key to bytes in O(1), with bounds and permissions. A key names
// a slot and the generation of its use, so a key of memory that is registered no more is refused, even if the
// slot is in use again.
//
//   key: | 31 remote | 30..8 slot | 7..0 generation |
//
// lkey and rkey of one region differ in the top bit: taking one for the other is an error, as it may be on a
// real device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libbx/base/prng.h"
#include "libbx/base/result.h"
#include "libbx/fabric/types.h"

namespace bx::loopback {

class MemoryTable {
 public:
  static constexpr std::uint32_t kRegionsMax = 1U << 23U;

  struct Keys {
    fabric::LKey lkey{};
    fabric::RKey rkey{};
  };

  // Generations begin at random, so that keys of an earlier device with the same name mean nothing here.
  explicit MemoryTable(Prng prng) noexcept : prng_(prng) {}

  // Errors: invalid_argument (no bytes), exhausted.
  Result<Keys> add(std::span<std::byte> bytes, fabric::Access access);
  void remove(Keys keys) noexcept;
  [[nodiscard]] std::uint32_t live() const noexcept { return live_; }

  // The memory that an SGE names, or null if its key does not cover it.
  [[nodiscard]] std::byte* local(const fabric::Sge& sge) const noexcept;
  [[nodiscard]] std::byte* remote(const fabric::RemoteSpan& span, std::uint64_t length,
                                  fabric::Access right) const noexcept;

 private:
  struct Slot {
    std::byte* base = nullptr;  // null: free
    std::uint64_t length = 0;
    fabric::Access access{};
    std::uint8_t generation = 0;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  [[nodiscard]] const Slot* find(std::uint32_t key) const noexcept;

  Prng prng_;
  std::vector<Slot> slots_;
  std::uint32_t free_ = kNone;
  std::uint32_t live_ = 0;
};

}  // namespace bx::loopback
