// SPDX-License-Identifier: BSD-3-Clause
// The receive slots of a worker and the shared receive queue they are posted to. Slots are alike; each is
// free, posted or lent to the application as a Buffer. What peers may consume is counted elsewhere
// (core::CreditIssuer); this pool promises only that a slot is posted whenever post() says so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/fabric/device.h"
#include "libbx/memory/arena.h"

namespace bx::engine {

// Told when a kept slot came back, so that a receive that had to wait can be posted.
class SlotListener {
 public:
  virtual void on_slot_free(std::uint32_t slot) noexcept = 0;

 protected:
  ~SlotListener() = default;
};

class ReceivePool final : public BufferOwner {
 public:
  struct Limits {
    std::uint32_t slots_max;          // posted and lent together; the receive queue is made for it
    std::uint32_t slot_bytes;         // header, descriptor and eager payload
    std::uint32_t spare;              // slots beyond those posted, to lend
    std::uint32_t lend_percent = 75;  // of the spare ones, that may be kept before payloads are copied out
  };
  // Memory that so many slots take.
  [[nodiscard]] static std::uint64_t memory_of(std::uint64_t slots, std::uint64_t slot_bytes) noexcept;
  static Result<std::unique_ptr<ReceivePool>> create(fabric::Device& device, memory::Arena& arena,
                                                     const Limits& limits);

  [[nodiscard]] fabric::SharedReceiveQueue& queue() noexcept { return *queue_; }
  ~ReceivePool();
  ReceivePool(const ReceivePool&) = delete;
  ReceivePool& operator=(const ReceivePool&) = delete;

  // Null while nobody waits for a slot.
  void set_listener(SlotListener* listener) noexcept { listener_ = listener; }
  // Makes sure that `count` more slots can be posted, and that `posted_wanted` receives can be posted now,
  // whatever is lent; grows the pool by arena memory. Errors: exhausted.
  Result<> reserve(std::uint32_t count, std::uint32_t posted_wanted);
  // The slots of `count` receives posted by reserve()d right are no longer promised to anyone.
  void unreserve(std::uint32_t count) noexcept { reserved_ -= count; }
  // Queues one free slot for posting; false if none is free. flush() rings the bell.
  [[nodiscard]] bool post() noexcept {
    if (free_count_ == 0) return false;
    *staged_end_++ = free_[--free_count_]->request;
    return true;
  }
  // Queues this consumed slot itself.
  void post_again(std::uint32_t slot) noexcept {
    --kept_;
    *staged_end_++ = slots_[slot].request;
  }
  // Receives posted and not consumed, those queued included.
  [[nodiscard]] std::uint32_t posted() const noexcept { return made_ - free_count_ - kept_; }
  struct Flushed {
    std::uint32_t receives;
    std::uint32_t doorbells;
  };
  Flushed flush() noexcept { return staged_end_ == staged_.get() ? Flushed{0, 0} : flush_staged(); }

  // A completion consumed this slot: what the NIC wrote into it.
  [[nodiscard]] std::span<const std::byte> consumed(std::uint32_t slot, std::uint32_t bytes) noexcept {
    BX_CHECK(slot < made_ && posted() > 0, "a completion names a receive slot that is not posted");
    ++kept_;
    return {slots_[slot].data, std::min(bytes, limits_.slot_bytes)};
  }
  // The same bytes again, of a slot that was kept.
  [[nodiscard]] std::span<const std::byte> contents(std::uint32_t slot, std::uint32_t bytes) const noexcept {
    return {slots_[slot].data, bytes};
  }
  void release(std::uint32_t slot) noexcept { release(slots_[slot]); }
  // Lends part of a consumed slot as a Buffer; the slot is free when the last Buffer of it goes.
  Buffer lend(std::uint32_t slot, std::size_t offset, std::size_t size) noexcept {
    Slot& lent = slots_[slot];
    ++lent_;
    ++lent.leases;
    return Buffer(lent, lent.data + offset, size);
  }
  void reclaim(Block& block) noexcept override {
    auto& slot = static_cast<Slot&>(block);
    --lent_;
    if (--slot.leases == 0) {
      slot.shared = false;
      release(slot);
    }
  }
  // The worker itself keeps the slot, beside whoever it is lent to, until it lets go. Then it says whether
  // the slot is lent to nobody any more, and so is the worker's to post or to release.
  void hold(std::uint32_t slot) noexcept { ++slots_[slot].leases; }
  [[nodiscard]] bool let_go(std::uint32_t slot) noexcept {
    if (--slots_[slot].leases > 0) return false;
    slots_[slot].shared = false;
    return true;
  }
  // Until then what is lent of it are parts of it, none of which reaches beyond its own.
  void share(std::uint32_t slot) noexcept { slots_[slot].shared = true; }
  // Slots that are neither posted nor free: lent, or holding a message that waits.
  [[nodiscard]] std::uint32_t kept() const noexcept { return kept_; }
  // So many are kept that a payload should be copied out rather than lent, the one it lies in included.
  [[nodiscard]] bool scarce() const noexcept { return kept_ > lendable_; }
  // The next payload would be copied out.
  [[nodiscard]] bool at_mark() const noexcept { return kept_ > 0 && kept_ >= lendable_; }
  [[nodiscard]] std::uint32_t lent() const noexcept { return lent_; }
  // Bytes of memory that lent slots keep.
  [[nodiscard]] std::uint64_t lent_bytes() const noexcept {
    return std::uint64_t{lent_} * limits_.slot_bytes;
  }
  [[nodiscard]] std::uint32_t spare() const noexcept { return limits_.spare; }

 private:
  struct Slot : Block {
    std::uint32_t number = 0;
    std::uint32_t leases = 0;  // Buffers of it, and the worker's own hold
    fabric::Sge place;
    fabric::RecvWr request;  // of this one element, so slots never move
  };
  ReceivePool(memory::Arena& arena, const Limits& limits);
  void release(Slot& slot) noexcept {
    --kept_;
    free_[free_count_++] = &slot;
    if (listener_ != nullptr) [[unlikely]]
      listener_->on_slot_free(slot.number);
  }
  Result<> grow();
  Flushed flush_staged() noexcept;

  memory::Arena& arena_;
  SlotListener* listener_ = nullptr;
  Limits limits_;
  std::uint32_t lendable_;
  std::unique_ptr<fabric::SharedReceiveQueue> queue_;
  std::vector<Buffer> memory_;
  // Each made for slots_max, so that nothing moves or grows.
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Slot*[]> free_;  // a stack: the slot used last is the one in cache
  std::unique_ptr<fabric::RecvWr[]> staged_;
  std::uint32_t made_ = 0;
  std::uint32_t free_count_ = 0;
  fabric::RecvWr* staged_end_;
  std::uint32_t reserved_ = 0;
  std::uint32_t kept_ = 0;
  std::uint32_t lent_ = 0;
};

}  // namespace bx::engine
