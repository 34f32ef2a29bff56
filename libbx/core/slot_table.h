// SPDX-License-Identifier: BSD-3-Clause
// A table of fixed capacity whose handles carry a generation, so that a handle to what is gone is recognised
// and never reaches the newcomer in its place. O(1), no allocation after construction; slots never used are
// never touched, so a large capacity costs address space and no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "libbx/base/check.h"

namespace bx::core {

// Index in the low half, generation in the high half; generation 0 is never issued, so 0 is "none".
using SlotHandle = std::uint64_t;

template <class T>
class SlotTable {
 public:
  explicit SlotTable(std::uint32_t capacity)
      : capacity_(capacity), slots_(std::allocator<Slot>().allocate(capacity)) {}
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;
  ~SlotTable() {
    for (std::uint32_t i = 0; i < touched_; ++i) {
      if (slots_[i].live()) slots_[i].value()->~T();
    }
    std::allocator<Slot>().deallocate(slots_, capacity_);
  }

  [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }

  // Makes a T in a free slot; a full table is the caller's designed event, so ask full() first.
  template <class... Args>
  SlotHandle emplace(Args&&... args) noexcept {
    return make(std::forward<Args>(args)...).handle;
  }
  struct Made {
    SlotHandle handle;
    T& value;
  };
  template <class... Args>
  Made make(Args&&... args) noexcept {
    BX_CHECK(!full(), "emplace on a full slot table");
    std::uint32_t index = free_;
    if (index == kNone) [[unlikely]] {
      index = touched_++;
      new (&slots_[index]) Slot;
    }
    Slot& slot = slots_[index];
    free_ = slot.next_free;
    slot.next_free = kNone;
    slot.key = (slot.key & ~SlotHandle{kNone}) | index;
    ++size_;
    return {slot.key, *new (slot.storage) T(std::forward<Args>(args)...)};
  }
  // Null for a handle of something that is gone, or that was never issued.
  [[nodiscard]] T* find(SlotHandle handle) noexcept {
    const auto index = static_cast<std::uint32_t>(handle);
    if (index >= touched_ || slots_[index].key != handle) return nullptr;
    return slots_[index].value();
  }
  // Handles for the wire: 16 bits of index, 16 of generation (capacity up to 65536). 0 is never one of these,
  // because generations whose low half is 0 are skipped.
  [[nodiscard]] static std::uint32_t to_wire(SlotHandle handle) noexcept {
    return static_cast<std::uint32_t>(handle >> 32U) << 16U | (static_cast<std::uint32_t>(handle) & 0xffffU);
  }
  // 0 if what it named is gone or never was.
  [[nodiscard]] SlotHandle from_wire(std::uint32_t wire) const noexcept {
    const std::uint32_t index = wire & 0xffffU;
    if (index >= touched_ || !slots_[index].live() || ((slots_[index].key >> 32U) & 0xffffU) != wire >> 16U) {
      return 0;
    }
    return slots_[index].key;
  }
  void erase(SlotHandle handle) noexcept {
    T* value = find(handle);
    BX_CHECK(value != nullptr, "erase of a slot that is not live");
    erase(*value);
  }
  // The same, of what was found and has not gone since.
  void erase(T& value) noexcept {
    Slot& slot = *reinterpret_cast<Slot*>(&value);  // its storage is its first member
    const auto index = static_cast<std::uint32_t>(slot.key);
    value.~T();
    auto generation = static_cast<std::uint32_t>(slot.key >> 32U) + 1;
    if ((generation & 0xffffU) == 0) ++generation;
    slot.key = key_of(generation, kNone);
    slot.next_free = free_;
    free_ = index;
    --size_;
  }
  // Calls fn(handle, value) for every live slot in index order; fn may erase the one it was given.
  template <class Fn>
  void for_each(Fn&& fn) {
    for (std::uint32_t i = 0; i < touched_; ++i) {
      if (slots_[i].live()) fn(slots_[i].key, *slots_[i].value());
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr SlotHandle key_of(std::uint32_t generation, std::uint32_t index) noexcept {
    return (static_cast<SlotHandle>(generation) << 32U) | index;
  }
  struct Slot {
    alignas(T) std::byte storage[sizeof(T)];
    SlotHandle key = key_of(1, kNone);  // live: its handle; free: its next one but for the index
    std::uint32_t next_free = kNone;
    [[nodiscard]] bool live() const noexcept { return static_cast<std::uint32_t>(key) != kNone; }
    T* value() noexcept { return std::launder(reinterpret_cast<T*>(storage)); }
  };

  std::uint32_t capacity_;
  std::uint32_t touched_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t free_ = kNone;
  Slot* slots_;
};

}  // namespace bx::core
