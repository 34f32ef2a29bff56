// SPDX-License-Identifier: BSD-3-Clause
// The delay of a path while nothing queues on it, as far as it has been seen: the least delay of amounts of
// about the same size (a power of two apart at most), for the bytes themselves take time, and of how much
// nobody tells. What is above it is queueing.
//
// Whoever comes to a path that is never idle takes the queue for a part of the path; a window that goes by
// this then accepts as much again, until the queue has drained once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "libbx/base/time.h"

namespace bx::core {

class DelayBase {
 public:
  DelayBase() noexcept { least_.fill(Duration::max()); }
  // Whether there was a sample of that size before: one alone says nothing of queueing.
  [[nodiscard]] bool knows(std::uint64_t bytes) const noexcept {
    return least_[place(bytes)] != Duration::max();
  }
  // Takes a sample; returns the least of its size, this one included.
  Duration on_delay(std::uint64_t bytes, Duration delay) noexcept {
    Duration& least = least_[place(bytes)];
    return least = std::min(least, delay);
  }

 private:
  static constexpr std::size_t kSizes = 32;  // of more than 1 GiB is none
  static std::size_t place(std::uint64_t bytes) noexcept {
    return std::min<std::size_t>(std::bit_width(bytes), kSizes - 1);
  }
  std::array<Duration, kSizes> least_;
};

}  // namespace bx::core
