// SPDX-License-Identifier: BSD-3-Clause
#include "tests/differential/memory_layout.h"

#include <cstring>

#include "libbx/base/digest.h"

namespace bx::differential {
namespace {

constexpr std::size_t kGuardBytes = 512;

constexpr std::size_t begin_of(std::size_t region) noexcept {
  std::size_t at = kGuardBytes;
  for (std::size_t i = 0; i < region; ++i) at += slots_of(i) * kSlotBytes + kGuardBytes;
  return at;
}

constexpr std::size_t kMemoryBytes = begin_of(kRegions);
static_assert(kSlotBytes % 8 == 0 && kGuardBytes % 8 == 0, "a digest takes words, and atomics are aligned");

void add(Digest& digest, std::span<const std::byte> bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    digest.add(word);
  }
}

}  // namespace

SideMemory::SideMemory(Side side) : side_(side), bytes_(kMemoryBytes) {
  fill_all();
}

std::span<std::byte> SideMemory::region(std::size_t region) noexcept {
  return std::span(bytes_).subspan(begin_of(region), slots_of(region) * kSlotBytes);
}

std::span<std::byte> SideMemory::slot(std::size_t region, std::size_t slot) noexcept {
  return std::span(bytes_).subspan(begin_of(region) + slot * kSlotBytes, kSlotBytes);
}

std::uint64_t SideMemory::address(const Place& place, std::uint32_t length) noexcept {
  const std::span<std::byte> all = region(place.region);
  const auto first = reinterpret_cast<std::uint64_t>(all.data());
  constexpr std::uint64_t kStep = 8;  // so that an atomic stays aligned
  switch (place.bounds) {
    case Bounds::inside:
      break;
    case Bounds::before:
      return first - kStep;
    case Bounds::behind:
      return first + all.size() - (length == 0 ? 0 : (length - 1) / kStep * kStep);  // by 1 to 8 bytes
    case Bounds::wrapping:
      return UINT64_MAX - (kStep - 1);
  }
  return first + std::uint64_t{place.slot} * kSlotBytes + place.offset;
}

void SideMemory::fill_all() noexcept {
  fill(bytes_);
}

void SideMemory::fill(std::size_t region, std::size_t slot_index) noexcept {
  fill(slot(region, slot_index));
}

void SideMemory::fill(std::span<std::byte> bytes) noexcept {
  auto position = static_cast<std::uint64_t>(bytes.data() - bytes_.data()) / 8;
  for (std::size_t i = 0; i < bytes.size(); i += 8, ++position) {
    const std::uint64_t word = (position * 2 + index(side_) + 1) * 0x9e3779b97f4a7c15ULL;
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
}

std::vector<std::uint64_t> SideMemory::digests() noexcept {
  std::vector<std::uint64_t> digests;
  Digest guards;
  for (std::size_t at = 0; at < kRegions; ++at) {
    add(guards, std::span(bytes_).subspan(begin_of(at) - kGuardBytes, kGuardBytes));
    for (std::size_t i = 0; i < slots_of(at); ++i) {
      Digest digest;
      add(digest, slot(at, i));
      digests.push_back(digest.value());
    }
  }
  add(guards, std::span(bytes_).last(kGuardBytes));
  digests.push_back(guards.value());
  return digests;
}

}  // namespace bx::differential
