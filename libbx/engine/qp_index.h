// SPDX-License-Identifier: BSD-3-Clause
// Which peer a queue pair belongs to: what a receive's completion is routed by, since receives are shared.
// Linear probing in a table at most half full; no allocation after construction.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/fabric/types.h"

namespace bx::engine {

struct Peer;

class QpIndex {
 public:
  explicit QpIndex(std::uint32_t capacity)
      : capacity_(capacity), entries_(std::bit_ceil(2 * std::size_t{capacity})), mask_(entries_.size() - 1) {}

  // Null if the queue pair is nobody's.
  [[nodiscard]] Peer* find(fabric::QpNum qp) const noexcept {
    for (std::size_t at = home(qp);; at = (at + 1) & mask_) {
      if (entries_[at].peer == nullptr || entries_[at].qp == qp) return entries_[at].peer;
    }
  }
  void insert(fabric::QpNum qp, Peer& peer) noexcept {
    BX_CHECK(size_ < capacity_ && find(qp) == nullptr, "a queue pair of two peers, or more than peers.max");
    ++size_;
    place({qp, &peer});
  }
  void erase(fabric::QpNum qp) noexcept {
    std::size_t at = home(qp);
    while (entries_[at].qp != qp || entries_[at].peer == nullptr) at = (at + 1) & mask_;
    entries_[at] = {};
    --size_;
    // Those behind it may have been displaced by it.
    for (at = (at + 1) & mask_; entries_[at].peer != nullptr; at = (at + 1) & mask_) {
      place(std::exchange(entries_[at], {}));
    }
  }

 private:
  struct Entry {
    fabric::QpNum qp{};
    Peer* peer = nullptr;
  };
  // Numbers are often given in order; the low bits of their product with an odd constant are as distinct.
  [[nodiscard]] std::size_t home(fabric::QpNum qp) const noexcept {
    return (static_cast<std::uint32_t>(qp) * 0x9e3779b1U) & mask_;
  }
  void place(const Entry& entry) noexcept {
    std::size_t at = home(entry.qp);
    while (entries_[at].peer != nullptr) at = (at + 1) & mask_;
    entries_[at] = entry;
  }

  std::uint32_t capacity_;
  std::uint32_t size_ = 0;
  std::vector<Entry> entries_;
  std::size_t mask_;
};

}  // namespace bx::engine
