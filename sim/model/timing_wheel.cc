// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/timing_wheel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "libbx/base/check.h"

namespace bx::sim {
namespace {

constexpr std::size_t kSlotsAtStart = 4096;
constexpr std::size_t kInsertionSortMax = 16;

}  // namespace

TimingWheel::TimingWheel() : buckets_(kBuckets, kNone), occupied_(kBuckets / 64, 0) {
  open_.reserve(kSlotsAtStart);
  unsorted_.reserve(kSlotsAtStart);
  heap_.reserve(kSlotsAtStart);
  grow();
}

std::uint64_t TimingWheel::first_time() const noexcept {
  if (head_ != open_.size()) return open_[head_].time;
  std::uint64_t first = heap_.empty() ? UINT64_MAX : heap_.front().time;
  if (in_buckets_ == 0) return first;
  for (std::uint32_t slot = buckets_[ring_index(next_occupied())]; slot != kNone; slot = slots_[slot].next) {
    first = std::min(first, slots_[slot].time);
  }
  return first;
}

bool TimingWheel::contains(std::uint64_t time, std::uint32_t sequence_low, const void* argument) const {
  const auto is_it = [&](const auto& key) { return matches(key.slot, time, sequence_low, argument); };
  switch (place_of(time)) {
    case Place::open:
      return std::any_of(open_.begin() + static_cast<std::ptrdiff_t>(head_), open_.end(), is_it);
    case Place::heap:
      return std::any_of(heap_.begin(), heap_.end(), is_it);
    case Place::bucket:
      break;
  }
  std::uint32_t slot = buckets_[ring_index(time >> kBucketShift)];
  while (slot != kNone && !matches(slot, time, sequence_low, argument)) slot = slots_[slot].next;
  return slot != kNone;
}

bool TimingWheel::erase(std::uint64_t time, std::uint32_t sequence_low, const void* argument) {
  const auto is_it = [&](const auto& key) { return matches(key.slot, time, sequence_low, argument); };
  switch (place_of(time)) {
    case Place::open: {
      const auto it = std::find_if(open_.begin() + static_cast<std::ptrdiff_t>(head_), open_.end(), is_it);
      if (it == open_.end()) return false;
      release(it->slot);
      open_.erase(it);
      return true;
    }
    case Place::heap: {
      const auto it = std::find_if(heap_.begin(), heap_.end(), is_it);
      if (it == heap_.end()) return false;
      release(heap_remove(static_cast<std::size_t>(it - heap_.begin())).slot);
      return true;
    }
    case Place::bucket:
      break;
  }
  const std::size_t i = ring_index(time >> kBucketShift);
  std::uint32_t* link = &buckets_[i];
  while (*link != kNone && !matches(*link, time, sequence_low, argument)) link = &slots_[*link].next;
  if (*link == kNone) return false;
  const std::uint32_t slot = *link;
  *link = slots_[slot].next;
  if (buckets_[i] == kNone) occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  --in_buckets_;
  release(slot);
  return true;
}

void TimingWheel::grow() {
  const std::size_t before = slot_count_;
  const std::size_t after = before == 0 ? kSlotsAtStart : before * 2;
  BX_CHECK(after < kNone, "more pending events than a slot number can count");
  PageArray<Slot> memory(after);
  std::uninitialized_copy_n(slots_, before, memory.data());
  for (std::size_t i = after; i > before; --i) {
    new (&memory.data()[i - 1]) Slot;
    memory.data()[i - 1].next = free_;
    free_ = static_cast<std::uint32_t>(i - 1);
  }
  slots_memory_ = std::move(memory);
  slots_ = slots_memory_.data();
  slot_count_ = static_cast<std::uint32_t>(after);
}

void TimingWheel::place_elsewhere(std::uint32_t slot) {
  const Key key = key_of(slot);
  if (place_of(key.time) == Place::open) {
    put_in_open({key.time, slot});
  } else {
    heap_push(key);
  }
}

// Moves the next bucket that has events to open_, unless it begins after `limit`. Not looking further than
// that matters: the wheel's base never overtakes the clock, so later insertions find their bucket closed and
// cheap.
bool TimingWheel::open_next(std::uint64_t limit) {
  open_.clear();  // erase() may have left popped keys behind
  head_ = 0;
  std::uint64_t bucket = 0;
  if (in_buckets_ != 0) {
    bucket = next_occupied();
  } else {
    if (heap_.empty()) return false;
    bucket = heap_bucket_;
  }
  if ((bucket << kBucketShift) > limit) return false;
  base_ = bucket;
  while (heap_bucket_ < base_ + kBuckets) {
    const Key key = heap_remove(0);
    put_in_bucket(key.time >> kBucketShift, key.slot);
  }
  fill_open();
  return true;
}

void TimingWheel::fill_open() {
  const std::size_t i = ring_index(base_);
  unsorted_.clear();
  for (std::uint32_t slot = buckets_[i]; slot != kNone; slot = slots_[slot].next) {
    unsorted_.push_back({slots_[slot].time, slot});
  }
  buckets_[i] = kNone;
  occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  in_buckets_ -= unsorted_.size();
  if (scouted_bucket_ <= base_) scouted_ = kNone;  // what it was looking for has come
  // The list is last in, first out; events of equal time come sorted once it is turned round.
  open_.assign(unsorted_.rbegin(), unsorted_.rend());
  const auto earlier = [](const Due& a, const Due& b) { return a.time < b.time; };
  if (!std::is_sorted(open_.begin(), open_.end(), earlier)) sort_open();
}

// By time, and else as it is. The times of a bucket differ in few bits, so many of them are sorted by
// counting (two digits, the lower first), without a comparison that the processor could guess wrong.
void TimingWheel::sort_open() {
  if (open_.size() <= kInsertionSortMax) {
    for (std::size_t j = 1; j < open_.size(); ++j) {
      const Due due = open_[j];
      std::size_t k = j;
      for (; k > 0 && due.time < open_[k - 1].time; --k) open_[k] = open_[k - 1];
      open_[k] = due;
    }
    return;
  }
  constexpr unsigned kLowBits = 6;
  constexpr std::size_t kLow = std::size_t{1} << kLowBits;
  constexpr std::size_t kHigh = std::size_t{1} << (kBucketShift - kLowBits);
  const auto low = [](const Due& due) { return due.time % kLow; };
  const auto high = [](const Due& due) { return (due.time >> kLowBits) % kHigh; };
  std::array<std::uint32_t, kLow> low_begin{};
  std::array<std::uint32_t, kHigh> high_begin{};
  for (const Due& due : open_) {
    ++low_begin[low(due)];
    ++high_begin[high(due)];
  }
  std::exclusive_scan(low_begin.begin(), low_begin.end(), low_begin.begin(), 0U);
  std::exclusive_scan(high_begin.begin(), high_begin.end(), high_begin.begin(), 0U);
  for (const Due& due : open_) unsorted_[low_begin[low(due)]++] = due;
  for (const Due& due : unsorted_) open_[high_begin[high(due)]++] = due;
}

void TimingWheel::put_in_open(const Due& due) {
  if (head_ == open_.size() || due.time >= open_.back().time) {
    open_.push_back(due);
    return;
  }
  const auto later = [](std::uint64_t time, const Due& other) { return time < other.time; };
  const auto waiting = open_.begin() + static_cast<std::ptrdiff_t>(head_);
  open_.insert(std::upper_bound(waiting, open_.end(), due.time, later), due);
}

void TimingWheel::heap_push(const Key& key) {
  heap_.push_back(key);
  heap_sift_up(heap_.size() - 1, key);
  heap_bucket_ = heap_.front().time >> kBucketShift;
}

TimingWheel::Key TimingWheel::heap_remove(std::size_t index) {
  const Key removed = heap_[index];
  const Key last = heap_.back();
  heap_.pop_back();
  if (index < heap_.size()) {
    if (index > 0 && last < heap_[(index - 1) / 4]) {
      heap_sift_up(index, last);
    } else {
      heap_sift_down(index, last);
    }
  }
  heap_bucket_ = heap_.empty() ? UINT64_MAX : heap_.front().time >> kBucketShift;
  return removed;
}

void TimingWheel::heap_sift_up(std::size_t index, const Key& key) noexcept {
  while (index > 0) {
    const std::size_t parent = (index - 1) / 4;
    if (!(key < heap_[parent])) break;
    heap_[index] = heap_[parent];
    index = parent;
  }
  heap_[index] = key;
}

void TimingWheel::heap_sift_down(std::size_t index, const Key& key) noexcept {
  for (;;) {
    const std::size_t first = index * 4 + 1;
    if (first >= heap_.size()) break;
    const std::size_t end = std::min(first + 4, heap_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (heap_[child] < heap_[least]) least = child;
    }
    if (!(heap_[least] < key)) break;
    heap_[index] = heap_[least];
    index = least;
  }
  heap_[index] = key;
}

bool TimingWheel::matches(std::uint32_t slot, std::uint64_t time, std::uint32_t sequence_low,
                          const void* argument) const noexcept {
  const Event& event = slots_[slot];
  return event.time == time && static_cast<std::uint32_t>(event.sequence) == sequence_low &&
         event.argument == argument;
}

void TimingWheel::release(std::uint32_t slot) noexcept {
  slots_[slot].next = free_;
  free_ = slot;
}

}  // namespace bx::sim
