// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/memory_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "libbx/base/check.h"

namespace bx::sim {

namespace {

const char* fault_of(std::span<std::byte> bytes, MemoryAccess access) noexcept {
  if (bytes.empty()) return "a memory region may not be empty";
  const auto rights = static_cast<unsigned>(access);
  constexpr auto kWrites = static_cast<unsigned>(MemoryAccess::remote_write | MemoryAccess::remote_atomic);
  if ((rights & kWrites) != 0 && (rights & static_cast<unsigned>(MemoryAccess::local_write)) == 0) {
    return "remote_write and remote_atomic need local_write (ibv_reg_mr(3))";
  }
  return nullptr;
}

}  // namespace

Result<MemoryKeys> MemoryTable::add(std::span<std::byte> bytes, MemoryAccess access) {
  if (const char* fault = fault_of(bytes, access); fault != nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, fault, EINVAL);
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
  ++used_;
  return fill(slot, bytes, access);
}

MemoryKeys MemoryTable::fill(std::uint32_t slot, std::span<std::byte> bytes, MemoryAccess access) noexcept {
  Region& region = regions_[slot];
  // Generation 0 is never used: a key of 0 covers nothing.
  region.generation = region.generation % kGenerations + 1;
  region.begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  region.length = bytes.size();
  region.lkey = lkey_of(slot, region.generation);
  region.access = access;
  return MemoryKeys{region.lkey, region.lkey | kRemoteBit};
}

void MemoryTable::remove(const MemoryKeys& keys) noexcept {
  const std::uint32_t slot = slot_of(keys.lkey);
  BX_CHECK(slot < regions_.size() && regions_[slot].length > 0 &&
               lkey_of(slot, regions_[slot].generation) == keys.lkey,
           "a memory region was removed twice");
  (void)invalidate(keys.lkey);
  regions_[slot].length = 0;
  free_.push_back(slot);
  --used_;
}

Result<MemoryKeys> MemoryTable::reregister(const MemoryKeys& keys, std::span<std::byte> bytes,
                                           MemoryAccess access) {
  if (const char* fault = fault_of(bytes, access); fault != nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, fault, EINVAL);
  }
  const std::uint32_t slot = slot_of(keys.lkey);
  BX_CHECK(slot < regions_.size() && regions_[slot].length > 0 &&
               lkey_of(slot, regions_[slot].generation) == keys.lkey,
           "a memory region was registered again by keys that it no longer has");
  return fill(slot, bytes, access);
}

// The region whose lkey or rkey this is.
MemoryTable::Region* MemoryTable::find(std::uint32_t key) noexcept {
  const std::uint32_t slot = slot_of(key);
  if (slot >= regions_.size() || regions_[slot].lkey != (key & ~kRemoteBit)) return nullptr;
  return regions_[slot].length > 0 ? &regions_[slot] : nullptr;
}

bool MemoryTable::invalidate(std::uint32_t key) noexcept {
  Region* region = find(key);
  if (region == nullptr) return false;
  region->lkey = lkey_of(slot_of(key) ^ 1U, 0);
  return true;
}

bool MemoryTable::invalidate_remotely(std::uint32_t rkey) noexcept {
  const Region* region = find(rkey);
  const bool is_remote = (rkey & kRemoteBit) != 0;
  return is_remote && region != nullptr && region->access > MemoryAccess::local_write && invalidate(rkey);
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

bool covered(const MemoryTable& memory, std::span<const Segment> segments, std::uint64_t offset,
             std::uint64_t count, MemoryAccess access) noexcept {
  return for_each_piece(memory, segments, offset, count, access,
                        [](std::byte* /*at*/, std::size_t /*done*/, std::size_t /*count*/) {});
}

std::uint64_t total_length(std::span<const Segment> segments) noexcept {
  std::uint64_t total = 0;
  for (const Segment& segment : segments) total += segment.length;
  return total;
}

}  // namespace bx::sim
