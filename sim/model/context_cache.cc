// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/context_cache.h"

#include <bit>

namespace bx::sim {

ContextCache::ContextCache(std::uint32_t entries)
    : entries_(entries), buckets_(entries == 0 ? 0 : std::bit_ceil(2 * std::size_t{entries}), kNone) {
  if (entries == 0) return;
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(buckets_.size()));
  for (std::uint32_t i = entries; i > 0; --i) {
    entries_[i - 1].next = free_;
    free_ = i - 1;
  }
}

std::uint32_t& ContextCache::bucket(std::uint64_t key) noexcept {
  return buckets_[key * 0x9e3779b97f4a7c15U >> shift_];  // multiplicative hashing by the golden ratio
}

std::uint32_t ContextCache::find(std::uint64_t key) noexcept {
  std::uint32_t index = bucket(key);
  while (index != kNone && entries_[index].key != key) index = entries_[index].next;
  return index;
}

void ContextCache::unhash(std::uint32_t index) noexcept {
  std::uint32_t* link = &bucket(entries_[index].key);
  while (*link != index) link = &entries_[*link].next;
  *link = entries_[index].next;
}

void ContextCache::unlink(std::uint32_t index) noexcept {
  const Entry& entry = entries_[index];
  (entry.newer == kNone ? newest_ : entries_[entry.newer].older) = entry.older;
  (entry.older == kNone ? oldest_ : entries_[entry.older].newer) = entry.newer;
}

void ContextCache::link_newest(std::uint32_t index) noexcept {
  Entry& entry = entries_[index];
  entry.newer = kNone;
  entry.older = newest_;
  (newest_ == kNone ? oldest_ : entries_[newest_].newer) = index;
  newest_ = index;
}

bool ContextCache::touch(std::uint64_t key) {
  if (entries_.empty()) return true;
  std::uint32_t index = find(key);
  if (index != kNone) {
    ++hits_;
    if (index == newest_) return true;
    unlink(index);
    link_newest(index);
    return true;
  }
  ++misses_;
  if (free_ != kNone) {
    index = free_;
    free_ = entries_[index].next;
    ++used_;
  } else {
    index = oldest_;
    unlink(index);
    unhash(index);
  }
  entries_[index].key = key;
  std::uint32_t& head = bucket(key);
  entries_[index].next = head;
  head = index;
  link_newest(index);
  return false;
}

void ContextCache::forget(std::uint64_t key) {
  if (entries_.empty()) return;
  const std::uint32_t index = find(key);
  if (index == kNone) return;
  unlink(index);
  unhash(index);
  entries_[index].key = 0;
  entries_[index].next = free_;
  free_ = index;
  --used_;
}

}  // namespace bx::sim
