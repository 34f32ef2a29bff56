// SPDX-License-Identifier: GPL-2.0-only
// The NIC's translation and protection table: which memory each key covers and what a peer may do there.
//
//   key: | 31 remote | 30..28 generation | 27..8 slot | 7..0 generation |
//
// The low eight bits are what verbs call the key's tag (IBA 1.4, 10.6.3.3): they change whenever a slot is
// used again, and with them three bits that real keys lack, so that a key of memory that is gone is refused
// for 2047 uses of its slot instead of 255. The lkey and the rkey of a region differ, and so do those of
// different NICs: taking one for another is an error here, as it may be on a real device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "libbx/base/result.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

enum class MemoryAccess : std::uint8_t {
  local_read = 0,  // always allowed
  local_write = 1,
  remote_read = 2,
  remote_write = 4,
  remote_atomic = 8,
};
constexpr MemoryAccess operator|(MemoryAccess a, MemoryAccess b) noexcept {
  return static_cast<MemoryAccess>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

struct MemoryKeys {
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
};

class MemoryTable {
 public:
  static constexpr unsigned kSlotBits = 20;
  static constexpr std::uint32_t kKeyMask = (1U << 31U) - 1;  // what the two keys of a region share
  static constexpr std::size_t kRegionsMax = std::size_t{1} << kSlotBits;

  // `seed` decides where the generations begin.
  explicit MemoryTable(std::uint32_t seed = 0) noexcept : seed_(seed) {}

  // ibv_reg_mr(3). Errors: invalid_argument (empty; remote_write or remote_atomic without local_write),
  // exhausted (kRegionsMax).
  Result<MemoryKeys> add(std::span<std::byte> bytes, MemoryAccess access);
  // Access ends at once, also in the middle of a message.
  void remove(const MemoryKeys& keys) noexcept;
  // ibv_rereg_mr(3): the region gets other bytes, rights and keys, and its old keys are refused. Errors:
  // invalid_argument, as add().
  Result<MemoryKeys> reregister(const MemoryKeys& keys, std::span<std::byte> bytes, MemoryAccess access);
  // Both keys of the region end, until it is registered again. False if `key` is no valid key.
  [[nodiscard]] bool invalidate(std::uint32_t key) noexcept;
  // Likewise, asked for by the peer, who may know only the rkey of a region with a remote right.
  [[nodiscard]] bool invalidate_remotely(std::uint32_t rkey) noexcept;
  // Whether `key` (an lkey for local access, an rkey for remote) covers [addr, addr + length) with all of
  // `access`. O(1).
  [[nodiscard]] bool covers(std::uint32_t key, std::uint64_t addr, std::uint64_t length,
                            MemoryAccess access) const noexcept {
    const std::uint32_t slot = slot_of(key);
    if (slot >= regions_.size()) return false;
    const Region& region = regions_[slot];
    const auto wanted = static_cast<unsigned>(access);
    const bool remote = wanted > static_cast<unsigned>(MemoryAccess::local_write);
    const std::uint32_t expected = region.lkey | (remote ? kRemoteBit : 0);
    return key == expected && addr >= region.begin && length <= region.length &&
           addr - region.begin <= region.length - length &&
           (static_cast<unsigned>(region.access) & wanted) == wanted;
  }
  [[nodiscard]] std::size_t size() const noexcept { return used_; }
  // Where in its region an address lies; `key`, of either kind, covers it.
  [[nodiscard]] std::uint64_t offset_in_region(std::uint32_t key, std::uint64_t addr) const noexcept {
    return addr - regions_[slot_of(key)].begin;
  }

 private:
  struct Region {
    std::uint64_t begin = 0;
    std::uint64_t length = 0;      // 0: the slot is free
    std::uint32_t lkey = 0;        // one of another slot when there is no valid key
    std::uint32_t generation = 0;  // of the latest key
    MemoryAccess access{};
  };
  static constexpr unsigned kTagBits = 8;
  static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
  static constexpr std::uint32_t kRemoteBit = 1U << 31U;
  static constexpr std::uint32_t kGenerations = (1U << (31 - kSlotBits)) - 1;  // 1 .. kGenerations

  static constexpr std::uint32_t slot_of(std::uint32_t key) noexcept { return (key >> kTagBits) & kSlotMask; }
  static constexpr std::uint32_t lkey_of(std::uint32_t slot, std::uint32_t generation) noexcept {
    return (generation >> kTagBits) << (kSlotBits + kTagBits) | slot << kTagBits |
           (generation & ((1U << kTagBits) - 1));
  }
  [[nodiscard]] Region* find(std::uint32_t key) noexcept;
  MemoryKeys fill(std::uint32_t slot, std::span<std::byte> bytes, MemoryAccess access) noexcept;

  std::uint32_t seed_;

  std::vector<Region> regions_;
  std::deque<std::uint32_t> free_;  // oldest first, so that a slot rests as long as possible
  std::size_t used_ = 0;
};

// Segments seen as one run of bytes. Each copy checks the keys of what it touches: memory may be
// deregistered, and then freed, in the middle of a message. Empty segments need no valid key (IBA 1.4,
// 10.6.7.2).
[[nodiscard]] bool all_covered(const MemoryTable& memory, std::span<const Segment> segments,
                               MemoryAccess access) noexcept;
// Copies out.size() bytes beginning `offset` into the run. False, and `out` is undefined, on a bad key.
[[nodiscard]] bool gather(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
                          std::span<std::byte> out) noexcept;
// Copies `bytes` to the run at `offset`; they must fit. False on a bad key; what lies before it is written.
[[nodiscard]] bool scatter(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
                           std::span<const std::byte> bytes) noexcept;
// Whether the keys of all that [offset, offset + count) of the run touches cover it.
[[nodiscard]] bool covered(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
                           std::uint64_t count, MemoryAccess access) noexcept;
// Calls visit(key, address, count) for each piece of [offset, offset + count) of the run.
template <class Visit>
void visit_pieces(std::span<const Segment> segments, std::uint64_t offset, std::uint64_t count, Visit visit) {
  for (const Segment& segment : segments) {
    if (count == 0) return;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::uint64_t piece = std::min<std::uint64_t>(count, segment.length - offset);
    visit(segment.key, segment.addr + offset, piece);
    count -= piece;
    offset = 0;
  }
}
[[nodiscard]] std::uint64_t total_length(std::span<const Segment> segments) noexcept;

// Addresses on the wire are addresses in this process: all hosts of a simulation live in it.
inline std::byte* memory_at(std::uint64_t addr) noexcept {
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(addr));
}

}  // namespace bx::sim
