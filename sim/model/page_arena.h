// SPDX-License-Identifier: GPL-2.0-only
// Memory for the objects of one simulation that events reach in no order, in as few pages as there can be
// (page_array.h). It is given back all at once, with the arena; who makes an object there destroys it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/model/page_array.h"

namespace bx::sim {

class PageArena {
 public:
  PageArena() = default;
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // Begins with a cache line.
  [[nodiscard]] std::byte* take(std::size_t bytes) {
    const std::size_t rounded = (bytes + kLine - 1) / kLine * kLine;
    if (rounded > left_) add_chunk(rounded);
    std::byte* const taken = at_;
    at_ += rounded;
    left_ -= rounded;
    return taken;
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kChunk = std::size_t{64} << 10U;  // the first one; grows to a huge page

  // Twice as much as there is; what is left of the last one stays unused.
  void add_chunk(std::size_t least) {
    left_ = std::max(least, std::clamp(total_, kChunk, kHugePageBytes));
    chunks_.emplace_back(left_);
    at_ = chunks_.back().data();
    total_ += left_;
  }

  std::vector<PageArray<std::byte>> chunks_;
  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  std::size_t total_ = 0;
};

}  // namespace bx::sim
