// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/loopback/memory_table.h"

#include "libbx/base/check.h"

namespace bx::loopback {
namespace {

constexpr std::uint32_t kRemoteBit = 1U << 31U;
constexpr std::uint32_t kSlotShift = 8;
constexpr std::uint32_t kSlotMask = MemoryTable::kRegionsMax - 1;

// The bytes [addr, addr + length) of the region, or null if they are not all inside.
std::byte* inside(std::byte* base, std::uint64_t size, std::uint64_t addr, std::uint64_t length) noexcept {
  const auto first = reinterpret_cast<std::uint64_t>(base);
  if (addr < first || addr - first > size || length > size - (addr - first)) return nullptr;
  return base + (addr - first);
}

}  // namespace

Result<MemoryTable::Keys> MemoryTable::add(std::span<std::byte> bytes, fabric::Access access) {
  if (bytes.empty()) return fail(ErrorCode::invalid_argument, ErrorScope::operation, "no bytes to register");
  std::uint32_t index = free_;
  if (index == kNone) {
    if (slots_.size() == kRegionsMax) {
      return fail(ErrorCode::exhausted, ErrorScope::operation, "too many memory regions");
    }
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back().generation = static_cast<std::uint8_t>(prng_.below(256));
  } else {
    free_ = slots_[index].next_free;
  }
  Slot& slot = slots_[index];
  slot.base = bytes.data();
  slot.length = bytes.size();
  slot.access = access;
  ++live_;
  const std::uint32_t key = (index << kSlotShift) | slot.generation;
  return Keys{fabric::LKey{key}, fabric::RKey{key | kRemoteBit}};
}

void MemoryTable::remove(Keys keys) noexcept {
  const std::uint32_t index = (static_cast<std::uint32_t>(keys.lkey) >> kSlotShift) & kSlotMask;
  Slot& slot = slots_[index];
  BX_CHECK(slot.base != nullptr, "a memory region was removed twice");
  slot.base = nullptr;
  ++slot.generation;
  slot.next_free = free_;
  free_ = index;
  --live_;
}

const MemoryTable::Slot* MemoryTable::find(std::uint32_t key) const noexcept {
  const std::uint32_t index = (key >> kSlotShift) & kSlotMask;
  if (index >= slots_.size()) return nullptr;
  const Slot& slot = slots_[index];
  return slot.base != nullptr && slot.generation == (key & 0xffU) ? &slot : nullptr;
}

std::byte* MemoryTable::local(const fabric::Sge& sge) const noexcept {
  const auto key = static_cast<std::uint32_t>(sge.lkey);
  const Slot* slot = (key & kRemoteBit) == 0 ? find(key) : nullptr;
  return slot == nullptr ? nullptr : inside(slot->base, slot->length, sge.addr, sge.length);
}

std::byte* MemoryTable::remote(const fabric::RemoteSpan& span, std::uint64_t length,
                               fabric::Access right) const noexcept {
  const auto key = static_cast<std::uint32_t>(span.rkey);
  const Slot* slot = (key & kRemoteBit) != 0 ? find(key) : nullptr;
  if (slot == nullptr || !allows(slot->access, right)) return nullptr;
  return inside(slot->base, slot->length, span.addr, length);
}

}  // namespace bx::loopback
