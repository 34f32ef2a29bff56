// SPDX-License-Identifier: GPL-2.0-only
// Memory that objects hold only while they are busy, in blocks of a power of two: what a queue pair needs for
// its requests goes from one to the next, so that a hundred thousand idle ones cost little. A block is ready
// for each of the first kReady users of a size, so that these never wait for an allocation; beyond, the pool
// grows to what was ever needed at once, in slabs, and never shrinks. A block that is given back is the next
// to be taken.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/check.h"

namespace bx::sim {

class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() { BX_CHECK(in_use_ == 0, "a pool was destroyed before its blocks were given back"); }

  static constexpr std::uint32_t kReady = 64;

  // Somebody will take a block of `bytes` at a time, until leave().
  void join(std::size_t bytes) {
    const unsigned size_class = class_of(bytes);
    const std::uint32_t users = ++users_[size_class];
    while (blocks_[size_class] < (users < kReady ? users : kReady)) grow(size_class);
  }
  void leave(std::size_t bytes) noexcept { --users_[class_of(bytes)]; }
  // At least `bytes`, aligned for any object; contents undefined.
  [[nodiscard]] void* take(std::size_t bytes) {
    const unsigned size_class = class_of(bytes);
    Link*& head = free_[size_class];
    if (head == nullptr) grow(size_class);
    Link* block = head;
    head = block->next;
    ++in_use_;
    return block;
  }
  // `bytes` as taken.
  void give(void* block, std::size_t bytes) noexcept {
    Link*& head = free_[class_of(bytes)];
    head = new (block) Link{head};
    --in_use_;
  }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

 private:
  struct Link {
    Link* next = nullptr;
  };
  static constexpr unsigned kSmallest = 6;  // 64 bytes
  static constexpr unsigned kClasses = 40;
  static constexpr std::size_t kSlabBytes = std::size_t{1} << 16U;

  static unsigned class_of(std::size_t bytes) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(bytes > 0 ? bytes - 1 : 0));
    return bits > kSmallest ? bits : kSmallest;
  }
  void grow(unsigned size_class) {
    BX_CHECK(size_class < kClasses, "a block is far too large");
    const std::size_t block = std::size_t{1} << size_class;
    const std::size_t count = block < kSlabBytes ? kSlabBytes / block : 1;
    blocks_[size_class] += static_cast<std::uint32_t>(count);
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(block * count));
    for (std::size_t i = count; i > 0; --i) {
      free_[size_class] = new (slabs_.back().get() + (i - 1) * block) Link{free_[size_class]};
    }
  }

  std::array<Link*, kClasses> free_{};
  std::array<std::uint32_t, kClasses> users_{};
  std::array<std::uint32_t, kClasses> blocks_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::size_t in_use_ = 0;
};

}  // namespace bx::sim
