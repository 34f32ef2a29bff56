// SPDX-License-Identifier: GPL-2.0-only
// The priority queue of the event loop: events leave it in exact order of (time, sequence).
//
//        open_ (sorted)      buckets of 2.048 ns (unsorted)            heap_ (4-ary)
//   ... [ now's bucket ][ base+1 ][ base+2 ] ... [ base+8191 ] | everything later ...
//
// Nearly every event of a network of fast links lies within microseconds, so inserting one is a push on a
// bucket's list; a bucket is sorted only when its turn comes. Timers further away than the wheel turns wait
// in the heap and move to the wheel as it advances.
//
// Invariants: open_ holds the events of bucket base_ and before; a bucket's list those of one of the buckets
// (base_, base_ + kBuckets); the heap everything later.
// Any time may be inserted at any moment, also one before what pop_until has already looked at.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace bx::sim {

// A plain function and two words: what an event calls.
using EventFn = void (*)(void* object, void* argument);

struct Event {
  std::uint64_t time = 0;      // ps
  std::uint64_t sequence = 0;  // order of insertion; unique
  EventFn fn = nullptr;
  void* object = nullptr;
  void* argument = nullptr;
  std::uint32_t context = 0;  // ns-3's: the node that an event belongs to
};

class TimingWheel {
 public:
  TimingWheel();

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Allocates only when more events are pending than ever before.
  void insert(const Event& event) {
    const std::uint32_t slot = take_slot();
    slots_[slot].event = event;
    ++size_;
    place(slot);
  }

  // Takes the first event into `out` if its time is at most `limit`.
  bool pop_until(std::uint64_t limit, Event& out) {
    if (head_ == open_.size()) {
      if (const std::uint32_t slot = take_lone(limit); slot != kNone) {
        give_slot(slot, out);
        return true;
      }
      if (!open_next(limit)) return false;
    }
    const Key& key = open_[head_];
    if (key.time > limit) return false;
    give_slot(key.slot, out);
    if (++head_ == open_.size()) {
      open_.clear();
      head_ = 0;
    }
    return true;
  }

  // The same question for an event known by its time, the low half of its sequence number and its argument
  // (that is what an ns3::EventId remembers). Linear in the events of one bucket, or of the heap.
  [[nodiscard]] bool contains(std::uint64_t time, std::uint32_t sequence_low, const void* argument) const;
  bool erase(std::uint64_t time, std::uint32_t sequence_low, const void* argument);

 private:
  static constexpr unsigned kBucketShift = 11;  // 2^11 ps
  static constexpr std::uint64_t kBuckets = 8192;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Slot {
    Event event;
    std::uint32_t next = kNone;  // in a bucket's list or the free list
  };
  struct Key {
    std::uint64_t time;
    std::uint64_t sequence;
    std::uint32_t slot;
    friend bool operator<(const Key& a, const Key& b) noexcept {
      return a.time != b.time ? a.time < b.time : a.sequence < b.sequence;
    }
  };
  enum class Place : std::uint8_t { open, bucket, heap };

  [[nodiscard]] Place place_of(std::uint64_t time) const noexcept {
    const std::uint64_t bucket = time >> kBucketShift;
    if (bucket >= base_ + kBuckets) return Place::heap;
    return bucket <= base_ ? Place::open : Place::bucket;
  }
  [[nodiscard]] static std::size_t ring_index(std::uint64_t bucket) noexcept { return bucket % kBuckets; }
  [[nodiscard]] Key key_of(std::uint32_t slot) const noexcept {
    return {slots_[slot].event.time, slots_[slot].event.sequence, slot};
  }

  void give_slot(std::uint32_t number, Event& out) noexcept {
    Slot& slot = slots_[number];
    out = slot.event;
    slot.next = free_;
    free_ = number;
    --size_;
  }
  // The usual case, with nothing open: the next bucket is one of this word of the map and has a single event,
  // which needs no sorting. kNone if it is another case, and then nothing has changed.
  std::uint32_t take_lone(std::uint64_t limit) noexcept {
    const std::size_t at = ring_index(base_);
    const std::uint64_t bits = occupied_[at / 64] >> (at % 64);
    if (bits == 0) return kNone;
    const std::uint64_t bucket = base_ + static_cast<unsigned>(std::countr_zero(bits));
    const std::size_t i = ring_index(bucket);
    const std::uint32_t slot = buckets_[i];
    // What is far away comes nearer with the base, so the heap must have nothing to move.
    if (slots_[slot].next != kNone || slots_[slot].event.time > limit ||
        (!heap_.empty() && (heap_.front().time >> kBucketShift) < bucket + kBuckets)) {
      return kNone;
    }
    base_ = bucket;
    buckets_[i] = kNone;
    occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    --in_buckets_;
    return slot;
  }

  std::uint32_t take_slot() {
    if (free_ == kNone) grow();
    const std::uint32_t slot = free_;
    free_ = slots_[slot].next;
    return slot;
  }
  void place(std::uint32_t slot) {
    const std::uint64_t bucket = slots_[slot].event.time >> kBucketShift;
    if (bucket - base_ - 1 < kBuckets - 1) {  // neither base_ nor before, which wraps round
      put_in_bucket(bucket, slot);
    } else {
      place_elsewhere(slot);
    }
  }
  void place_elsewhere(std::uint32_t slot);
  void put_in_bucket(std::uint64_t bucket, std::uint32_t slot) noexcept {
    const std::size_t i = ring_index(bucket);
    slots_[slot].next = buckets_[i];
    buckets_[i] = slot;
    occupied_[i / 64] |= std::uint64_t{1} << (i % 64);
    ++in_buckets_;
  }
  void put_in_open(const Key& key) {
    // From the back: a new event is rarely earlier than those that wait already.
    std::size_t i = open_.size();
    open_.push_back(key);
    for (; i > head_ && key < open_[i - 1]; --i) open_[i] = open_[i - 1];
    open_[i] = key;
  }

  void grow();
  bool open_next(std::uint64_t limit);
  void fill_open();
  [[nodiscard]] std::uint64_t next_occupied() const noexcept;
  void heap_push(const Key& key);
  Key heap_remove(std::size_t index);
  void heap_sift_down(std::size_t index, const Key& key) noexcept;
  void heap_sift_up(std::size_t index, const Key& key) noexcept;
  [[nodiscard]] bool matches(std::uint32_t slot, std::uint64_t time, std::uint32_t sequence_low,
                             const void* argument) const noexcept;
  void release(std::uint32_t slot) noexcept;

  std::uint64_t base_ = 0;  // number of the bucket that was opened last
  std::size_t head_ = 0;    // open_[head_] is the first event
  std::vector<Key> open_;   // ascending from head_
  std::size_t size_ = 0;
  std::size_t in_buckets_ = 0;
  std::uint32_t free_ = kNone;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> buckets_;   // heads of the lists, kNone when empty
  std::vector<std::uint64_t> occupied_;  // one bit a bucket
  std::vector<Key> heap_;
};

}  // namespace bx::sim
