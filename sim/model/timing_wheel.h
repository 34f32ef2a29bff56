// SPDX-License-Identifier: GPL-2.0-only
// The priority queue of the event loop: events leave it in exact order of (time, sequence).
//
//        open_ (sorted)      buckets of 2.048 ns (unsorted)            heap_ (4-ary)
//   ... [ now's bucket ][ base+1 ][ base+2 ] ... [ base+8191 ] | everything later ...
//
// Nearly every event of a network of fast links lies within microseconds, so inserting one is a push on a
// bucket's list. When a bucket's turn comes its first event is looked for, if there are few; a longer list is
// sorted into open_. Timers further away than the wheel turns wait in the heap and move to the wheel as it
// advances.
//
// In a large network hardly anything that an event touches is at hand, and a list is the worst of it, as each
// event must come from memory before the next is known. So while the events of one crowded bucket run, a
// scout walks the lists of those that follow, one step an event, and asks for what it finds there.
//
// Invariants: open_ holds the events of bucket base_ and before; a bucket's list those of one of the buckets
// (base_, base_ + kBuckets), of equal times the later inserted first; the heap everything later.
// Any time may be inserted at any moment, also one before what pop_until has already looked at.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/model/page_array.h"

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
  std::uint32_t next = 0;     // the queue's own: its link in a bucket's list or the free list
};

// Told of an event that comes soon: three times, as fewer and fewer others come before it. It may ask the
// processor to fetch what the event will touch, and changes nothing. Three times, because where something is
// may have to be fetched first.
enum class Approach : std::uint8_t { first, far, near };
using ApproachFn = void (*)(const Event& event, Approach approach);

class TimingWheel {
 public:
  TimingWheel();
  // Only events of buckets that were worth sorting are announced: where events are few, memory is at hand.
  void announce_to(ApproachFn fn) noexcept { approach_ = fn; }

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    return in_buckets_ + heap_.size() + open_.size() - head_;
  }

  // Allocates only when more events are pending than ever before.
  void insert(const Event& event) {
    const std::uint32_t slot = take_slot();
    slots_[slot] = event;
    place(slot, event.time);
  }

  // Takes the first event if its time is at most `limit`; it stays readable until the next insertion. Null if
  // there is none.
  const Event* pop_until(std::uint64_t limit) {
    if (head_ == open_.size()) {
      if (const std::uint32_t slot = take_first(limit); slot != kNone) return &give_slot(slot);
      if (!open_next(limit)) return nullptr;
    }
    const Due due = open_[head_];
    if (due.time > limit) return nullptr;
    const Event& event = give_slot(due.slot);
    if (++head_ == open_.size()) {
      open_.clear();
      head_ = 0;
    } else if (approach_ != nullptr) {
      if (head_ + kFirst < open_.size()) announce(head_ + kFirst, Approach::first);
      if (head_ + kFar < open_.size()) announce(head_ + kFar, Approach::far);
      if (head_ + kNear < open_.size()) announce(head_ + kNear, Approach::near);
    }
    scout();
    return &event;
  }

  // Of the first event; UINT64_MAX if there is none. Linear in the events of one bucket.
  [[nodiscard]] std::uint64_t first_time() const noexcept;

  // The same question for an event known by its time, the low half of its sequence number and its argument
  // (that is what an ns3::EventId remembers). Linear in the events of one bucket, or of the heap.
  [[nodiscard]] bool contains(std::uint64_t time, std::uint32_t sequence_low, const void* argument) const;
  bool erase(std::uint64_t time, std::uint32_t sequence_low, const void* argument);

 private:
  static constexpr unsigned kBucketShift = 11;  // 2^11 ps
  static constexpr std::uint64_t kBuckets = 8192;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr unsigned kLookMax = 6;   // events of a bucket that are not worth sorting
  static constexpr std::size_t kFirst = 9;  // events before one that is announced
  static constexpr std::size_t kFar = 6;
  static constexpr std::size_t kNear = 3;
  static constexpr std::uint64_t kScoutedBuckets = 16;  // how far ahead of base_ the scout goes

  // Of one cache line.
  struct alignas(64) Slot : Event {
    Slot& operator=(const Event& event) noexcept {
      static_cast<Event&>(*this) = event;
      return *this;
    }
  };
  // In open_, where the order of equal times is that of the keys.
  struct Due {
    std::uint64_t time;
    std::uint32_t slot;
  };
  // In the heap.
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
    return {slots_[slot].time, slots_[slot].sequence, slot};
  }

  void announce(std::size_t index, Approach approach) const {
    approach_(slots_[open_[index].slot], approach);
  }
  const Event& give_slot(std::uint32_t number) noexcept {
    Slot& slot = slots_[number];
    slot.next = free_;
    free_ = number;
    return slot;
  }
  // The usual case, with nothing open: the next bucket has few events, and the first of them is looked for.
  // kNone if it is another case, or not due, and then nothing has changed. The bucket stays ahead of base_,
  // so that what is inserted into it meanwhile joins its list.
  std::uint32_t take_first(std::uint64_t limit) noexcept {
    if (in_buckets_ == 0) return kNone;
    const std::uint64_t bucket = next_occupied();
    // What is far away comes nearer with the base, so the heap must have nothing to move.
    if (heap_bucket_ < bucket - 1 + kBuckets) return kNone;
    const std::size_t i = ring_index(bucket);
    const std::uint32_t head = buckets_[i];
    std::uint32_t first = head;
    std::uint32_t before = kNone;  // `first` in the list
    unsigned seen = 1;
    for (std::uint32_t last = head, at = slots_[head].next; at != kNone; last = at, at = slots_[at].next) {
      if (++seen > kLookMax) return kNone;
      if (slots_[at].time > slots_[first].time) continue;
      first = at;
      before = last;
    }
    if (slots_[first].time > limit) return kNone;
    const std::uint32_t after = slots_[first].next;
    (before == kNone ? buckets_[i] : slots_[before].next) = after;
    if (seen == 1) occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    base_ = bucket - 1;
    --in_buckets_;
    return first;
  }

  std::uint32_t take_slot() {
    if (free_ == kNone) grow();
    const std::uint32_t slot = free_;
    free_ = slots_[slot].next;
    return slot;
  }
  void place(std::uint32_t slot, std::uint64_t time) {
    const std::uint64_t bucket = time >> kBucketShift;
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
  // Of equal times the one inserted last comes last.
  void put_in_open(const Due& due);

  // One step of the scout. What it learns only speeds things up, so a slot that has meanwhile been given to
  // another event, or to none, leads it astray and does no harm.
  void scout() noexcept {
    if (scouted_ == kNone) return scout_next_bucket();
    const Slot& slot = slots_[scouted_];
    __builtin_prefetch(slot.object);
    __builtin_prefetch(slot.argument);
    scouted_ = slot.next;
    if (scouted_ != kNone) __builtin_prefetch(&slots_[scouted_]);
  }
  void scout_next_bucket() noexcept {
    if (in_buckets_ == 0) return;
    if (scouted_bucket_ < base_) scouted_bucket_ = base_;
    const std::uint64_t next = next_occupied_after(scouted_bucket_);
    if (next > base_ + kScoutedBuckets) return;
    scouted_bucket_ = next;
    scouted_ = buckets_[ring_index(next)];
    __builtin_prefetch(&slots_[scouted_]);
  }

  void grow();
  bool open_next(std::uint64_t limit);
  void fill_open();
  void sort_open();
  // The first bucket after base_ that has events; there must be one.
  [[nodiscard]] std::uint64_t next_occupied() const noexcept { return next_occupied_after(base_); }
  // Likewise after `bucket`. With none between it and the wheel's end: a later one, which means an earlier.
  [[nodiscard]] std::uint64_t next_occupied_after(std::uint64_t bucket) const noexcept {
    const std::size_t start = ring_index(bucket + 1);
    std::size_t word = start / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start % 64));
    while (bits == 0) {  // the first word is looked at again for the bits before `start`
      word = (word + 1) % (kBuckets / 64);
      bits = occupied_[word];
    }
    const std::size_t found = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
    return bucket + 1 + (found - start) % kBuckets;
  }
  void heap_push(const Key& key);
  Key heap_remove(std::size_t index);
  void heap_sift_down(std::size_t index, const Key& key) noexcept;
  void heap_sift_up(std::size_t index, const Key& key) noexcept;
  [[nodiscard]] bool matches(std::uint32_t slot, std::uint64_t time, std::uint32_t sequence_low,
                             const void* argument) const noexcept;
  void release(std::uint32_t slot) noexcept;

  std::uint64_t base_ = 0;                  // all buckets up to this one are open or done
  std::uint64_t heap_bucket_ = UINT64_MAX;  // of the first event in the heap
  std::size_t head_ = 0;                    // open_[head_] is the first event
  std::vector<Due> open_;                   // ascending from head_
  std::size_t in_buckets_ = 0;
  std::uint32_t scouted_ = kNone;     // where the scout stands in the list of
  std::uint64_t scouted_bucket_ = 0;  // this bucket
  std::uint32_t free_ = kNone;
  std::uint32_t slot_count_ = 0;
  PageArray<Slot> slots_memory_;
  Slot* slots_ = nullptr;
  std::vector<std::uint32_t> buckets_;   // heads of the lists, kNone when empty
  std::vector<std::uint64_t> occupied_;  // one bit a bucket
  std::vector<Key> heap_;
  std::vector<Due> unsorted_;  // only while a bucket is opened
  ApproachFn approach_ = nullptr;
};

}  // namespace bx::sim
