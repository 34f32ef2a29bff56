// SPDX-License-Identifier: GPL-2.0-only
// A fixed number of objects that cannot be moved, side by side in memory: one is found by its index, without
// a pointer that would have to be fetched first. The memory is an arena's.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "libbx/base/check.h"
#include "sim/model/page_arena.h"

namespace bx::sim {

// T may be incomplete until something is made or used.
template <class T>
class ObjectArray {
 public:
  ObjectArray() = default;
  ObjectArray(const ObjectArray&) = delete;
  ObjectArray& operator=(const ObjectArray&) = delete;
  ~ObjectArray() {
    while (size_ > 0) objects_[--size_].~T();
  }

  // Once, and before any is made. The arena outlives this.
  void reserve(PageArena& arena, std::size_t count) {
    BX_CHECK(objects_ == nullptr, "an array of objects that stay where they are cannot grow");
    objects_ = reinterpret_cast<T*>(arena.take(count * sizeof(T)));
    capacity_ = count;
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    BX_CHECK(size_ < capacity_, "more objects than were reserved");
    T* const made = new (&objects_[size_]) T(std::forward<Args>(args)...);
    ++size_;
    return *made;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T& operator[](std::size_t index) noexcept { return objects_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const noexcept { return objects_[index]; }
  [[nodiscard]] const T* begin() const noexcept { return objects_; }
  [[nodiscard]] const T* end() const noexcept { return objects_ + size_; }

 private:
  T* objects_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace bx::sim
