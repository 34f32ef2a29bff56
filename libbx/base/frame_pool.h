// SPDX-License-Identifier: BSD-3-Clause
// Recycles coroutine frames: size classes of 64 bytes, a free list each. Grows by operator new while warming
// up, then allocates nothing. One per worker, one thread. Frames remember their pool, so freeing needs no
// argument.
#pragma once

#include <array>
#include <cstddef>

namespace bx {

class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool();  // every frame must be back

  // From `pool`, or from operator new if it is null or the frame is larger than kClasses * kStep.
  static void* allocate(FramePool* pool, std::size_t size);
  static void deallocate(void* frame, std::size_t size) noexcept;

  static constexpr std::size_t kStep = 64;
  static constexpr std::size_t kClasses = 32;

 private:
  struct alignas(16) Header {  // sits before every frame
    FramePool* pool;
    Header* next;
  };
  std::array<Header*, kClasses> free_{};
  std::size_t live_ = 0;
};

}  // namespace bx
