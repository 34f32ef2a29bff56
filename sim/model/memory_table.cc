// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/memory_table.h"

#include <algorithm>
#include <cstring>

#include "libbx/base/check.h"

namespace bx::sim {

Result<MemoryKeys> MemoryTable::add(std::span<std::byte> bytes, MemoryAccess access) {
  if (bytes.empty()) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, "a memory region may not be empty");
  }
  if (free_.empty()) {
    if (regions_.size() == kRegionsMax) {
      return fail(ErrorCode::exhausted, ErrorScope::device, "the NIC has no free memory region");
    }
    free_.push_back(static_cast<std::uint32_t>(regions_.size()));
    // The golden ratio spreads the first generations of NICs and slots.
    const std::uint32_t start = (seed_ + 1) * 2654435769U + free_.back();
    regions_.push_back({.generation = start % kGenerations});
  }
  const std::uint32_t slot = free_.front();
  free_.pop_front();
  Region& region = regions_[slot];
  // Generation 0 is never used: a key of 0 covers nothing.
  region.generation = region.generation % kGenerations + 1;
  region.begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  region.length = bytes.size();
  region.access = access;
  ++used_;
  const std::uint32_t lkey = (region.generation << kSlotBits) | slot;
  return MemoryKeys{lkey, lkey | kRemoteBit};
}

void MemoryTable::remove(const MemoryKeys& keys) noexcept {
  const std::uint32_t slot = keys.lkey & kSlotMask;
  BX_CHECK(slot < regions_.size() && regions_[slot].length > 0 &&
               regions_[slot].generation == (keys.lkey >> kSlotBits),
           "a memory region was removed twice");
  regions_[slot].length = 0;
  free_.push_back(slot);
  --used_;
}

bool MemoryTable::covers(std::uint32_t key, std::uint64_t addr, std::uint64_t length,
                         MemoryAccess access) const noexcept {
  const std::uint32_t slot = key & kSlotMask;
  if (slot >= regions_.size()) return false;
  const Region& region = regions_[slot];
  const auto wanted = static_cast<unsigned>(access);
  const bool remote = wanted > static_cast<unsigned>(MemoryAccess::local_write);
  const std::uint32_t expected = (region.generation << kSlotBits) | slot | (remote ? kRemoteBit : 0);
  return region.length > 0 && key == expected && addr >= region.begin && length <= region.length &&
         addr - region.begin <= region.length - length &&
         (static_cast<unsigned>(region.access) & wanted) == wanted;
}

bool all_covered(const MemoryTable& memory, std::span<const Segment> segments, MemoryAccess access) noexcept {
  return std::all_of(segments.begin(), segments.end(), [&](const Segment& s) {
    return s.length == 0 || memory.covers(s.key, s.addr, s.length, access);
  });
}

namespace {

// Calls copy(address, position in the run, count) for each piece of [offset, offset + count) of the segments.
template <class Copy>
bool for_each_piece(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
                    std::size_t count, MemoryAccess access, Copy copy) {
  std::size_t done = 0;
  for (const Segment& segment : segments) {
    if (done == count) return true;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const std::size_t piece = std::min<std::size_t>(count - done, segment.length - offset);
    if (!memory.covers(segment.key, segment.addr + offset, piece, access)) return false;
    copy(memory_at(segment.addr + offset), done, piece);
    done += piece;
    offset = 0;
  }
  BX_CHECK(done == count, "a copy runs past the end of its segments");
  return true;
}

}  // namespace

bool gather(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
            std::span<std::byte> out) noexcept {
  return for_each_piece(memory, segments, offset, out.size(), MemoryAccess::local_read,
                        [&](const std::byte* from, std::size_t at, std::size_t count) {
                          std::memcpy(out.data() + at, from, count);
                        });
}

bool scatter(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
             std::span<const std::byte> bytes) noexcept {
  return for_each_piece(
      memory, segments, offset, bytes.size(), MemoryAccess::local_write,
      [&](std::byte* to, std::size_t at, std::size_t count) { std::memcpy(to, bytes.data() + at, count); });
}

std::uint64_t total_length(std::span<const Segment> segments) noexcept {
  std::uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

}  // namespace bx::sim
