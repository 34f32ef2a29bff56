// SPDX-License-Identifier: GPL-2.0-only
// A cache of keys on a NIC, fully associative, the least recently used is replaced: queue pair contexts and
// memory translations live in host memory, and the NIC keeps those that it used last. Which policies real
// NICs have is not public; with LRU where the cliff stands follows from the size alone. Holds no values: what
// matters is whether a key is there.
//
// Invariants: at most `entries` keys; O(1) a touch; nothing is allocated after construction.
#pragma once

#include <cstdint>
#include <vector>

namespace bx::sim {

class ContextCache {
 public:
  // No entries: everything hits (the cache is off).
  explicit ContextCache(std::uint32_t entries);

  // True if `key` was there. It is now, as the most recently used. Keys are not 0.
  bool touch(std::uint64_t key);
  // It is no longer valid.
  void forget(std::uint64_t key);
  [[nodiscard]] std::uint32_t size() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t hits() const noexcept { return hits_; }
  [[nodiscard]] std::uint64_t misses() const noexcept { return misses_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    std::uint64_t key = 0;  // 0: free
    std::uint32_t newer = kNone;
    std::uint32_t older = kNone;
    std::uint32_t next = kNone;  // of the same bucket, or of the free list
  };
  [[nodiscard]] std::uint32_t& bucket(std::uint64_t key) noexcept;
  [[nodiscard]] std::uint32_t find(std::uint64_t key) noexcept;
  void unhash(std::uint32_t index) noexcept;
  void unlink(std::uint32_t index) noexcept;
  void link_newest(std::uint32_t index) noexcept;

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> buckets_;
  unsigned shift_ = 0;
  std::uint32_t newest_ = kNone;
  std::uint32_t oldest_ = kNone;
  std::uint32_t free_ = kNone;
  std::uint32_t used_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace bx::sim
