// SPDX-License-Identifier: GPL-2.0-only
// Objects by number with O(1) look-up. A number is a slot and a generation, so the number of an object that
// is gone finds nothing until the generation has wrapped; slots rest as long as possible before they are used
// again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "libbx/base/check.h"

namespace bx::sim {

// Numbers have 24 bits, as queue pair numbers do: kSlotBits of slot, the rest of generation.
template <class T, unsigned kSlotBits = 16>
class SlotTable {
 public:
  static constexpr std::size_t kSlotsMax = std::size_t{1} << kSlotBits;

  // Slots below `first` stay empty: numbers that are reserved.
  explicit SlotTable(std::size_t first = 0) : slots_(first) {}

  [[nodiscard]] bool full() const noexcept { return free_.empty() && slots_.size() == kSlotsMax; }
  // make(number) returns the object's unique_ptr. Not on a full table.
  template <class Make>
  T& emplace(Make make) {
    BX_CHECK(!full(), "a slot table is full");
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t slot = free_.front();
    free_.pop_front();
    Slot& entry = slots_[slot];
    entry.object = make((std::uint32_t{entry.generation} << kSlotBits) | slot);
    return *entry.object;
  }
  // Null if there is none.
  [[nodiscard]] T* find(std::uint32_t number) const noexcept {
    const std::uint32_t slot = number & kSlotMask;
    if (slot >= slots_.size() || slots_[slot].generation != number >> kSlotBits) return nullptr;
    return slots_[slot].object.get();
  }
  // What find() will read, from memory.
  void prefetch(std::uint32_t number) const noexcept {
    __builtin_prefetch(slots_.data() + (number & kSlotMask));  // one too large does no harm
  }
  void erase(std::uint32_t number) {
    BX_CHECK(find(number) != nullptr, "an object was destroyed twice");
    const std::uint32_t slot = number & kSlotMask;
    slots_[slot].object.reset();
    slots_[slot].generation = (slots_[slot].generation + 1U) & kGenerationMask;
    free_.push_back(slot);
  }
  // In the order of slots.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_) {
      if (slot.object != nullptr) visit(*slot.object);
    }
  }

 private:
  static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
  static constexpr std::uint32_t kGenerationMask = (1U << (24U - kSlotBits)) - 1;
  struct Slot {
    std::unique_ptr<T> object;
    std::uint32_t generation = 0;
  };
  std::vector<Slot> slots_;
  std::deque<std::uint32_t> free_;  // oldest first
};

}  // namespace bx::sim
