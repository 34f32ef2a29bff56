// SPDX-License-Identifier: BSD-3-Clause
// A FIFO of fixed capacity, set when it is made: no allocation afterwards. Reaching the capacity is the
// caller's designed event: push on a full ring is a programming error, so ask full() first.
#pragma once

#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include "libbx/base/check.h"

namespace bx {

template <class T>
class Ring {
 public:
  Ring() = default;
  explicit Ring(std::size_t capacity)
      : capacity_(capacity),
        mask_(std::bit_ceil(capacity < 1 ? std::size_t{1} : capacity) - 1),
        slots_(std::make_unique<T[]>(mask_ + 1)) {}

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool full() const noexcept { return size_ == capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  void push(T value) noexcept {
    BX_CHECK(!full(), "push on a full ring");
    slots_[(head_ + size_++) & mask_] = std::move(value);
  }
  T pop() noexcept {
    BX_CHECK(!empty(), "pop on an empty ring");
    T value = std::move(slots_[head_]);
    head_ = (head_ + 1) & mask_;
    --size_;
    return value;
  }
  T pop_back() noexcept {
    BX_CHECK(!empty(), "pop on an empty ring");
    return std::move(slots_[(head_ + --size_) & mask_]);
  }
  // Drops elements from the back until `size` are left.
  void shrink(std::size_t size) noexcept {
    BX_CHECK(size <= size_, "a ring cannot shrink to more than it has");
    size_ = size;
  }
  [[nodiscard]] T& front() noexcept { return (*this)[0]; }
  [[nodiscard]] const T& front() const noexcept {
    BX_CHECK(!empty(), "the front of an empty ring");
    return slots_[head_];
  }
  [[nodiscard]] T& back() noexcept { return (*this)[size_ - 1]; }
  // Element i counted from the front.
  [[nodiscard]] T& operator[](std::size_t i) noexcept {
    BX_CHECK(i < size_, "index past the end of a ring");
    return slots_[(head_ + i) & mask_];
  }

 private:
  std::size_t capacity_ = 0;
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<T[]> slots_;
};

}  // namespace bx
