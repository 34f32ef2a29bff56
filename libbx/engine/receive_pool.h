// SPDX-License-Identifier: BSD-3-Clause
// The receive slots of a worker and the shared receive queue they are posted to. Slots are alike; each is
// free, posted or lent to the application as a Buffer. What peers may consume is counted elsewhere
// (core::CreditIssuer); this pool promises only that a slot is posted whenever post() says so.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libbx/engine/arena.h"
#include "libbx/engine/buffer_owner.h"
#include "libbx/fabric/device.h"

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
    std::uint32_t slots_max;   // posted and lent together; the receive queue is made for it
    std::uint32_t slot_bytes;  // header, descriptor and eager payload
    std::uint32_t spare;       // slots beyond those posted, to lend
  };
  static Result<std::unique_ptr<ReceivePool>> create(fabric::Device& device, Arena& arena,
                                                     SlotListener& listener, const Limits& limits);

  [[nodiscard]] fabric::SharedReceiveQueue& queue() noexcept { return *queue_; }
  ~ReceivePool();
  ReceivePool(const ReceivePool&) = delete;
  ReceivePool& operator=(const ReceivePool&) = delete;

  // Makes sure that `count` more slots can be posted, and that `posted_wanted` receives can be posted now,
  // whatever is lent; grows the pool by arena memory. Errors: exhausted.
  Result<> reserve(std::uint32_t count, std::uint32_t posted_wanted);
  // The slots of `count` receives posted by reserve()d right are no longer promised to anyone.
  void unreserve(std::uint32_t count) noexcept { reserved_ -= count; }
  // Queues one free slot for posting; false if none is free. flush() rings the bell.
  [[nodiscard]] bool post() noexcept;
  // Queues this consumed slot itself.
  void post_again(std::uint32_t slot) noexcept;
  // Receives posted and not consumed, those queued included.
  [[nodiscard]] std::uint32_t posted() const noexcept { return posted_; }
  struct Flushed {
    std::uint32_t receives;
    std::uint32_t doorbells;
  };
  Flushed flush() noexcept;

  // A completion consumed this slot: what the NIC wrote into it.
  [[nodiscard]] std::span<const std::byte> consumed(std::uint32_t slot, std::uint32_t bytes) noexcept;
  // The same bytes again, of a slot that was kept.
  [[nodiscard]] std::span<const std::byte> contents(std::uint32_t slot, std::uint32_t bytes) const noexcept {
    return {reinterpret_cast<const std::byte*>(slots_[slot].addr), bytes};
  }
  void release(std::uint32_t slot) noexcept;
  // Lends part of a consumed slot as a Buffer; the slot is free when the Buffer goes.
  Buffer lend(std::uint32_t slot, std::size_t offset, std::size_t size) noexcept;
  void reclaim(std::byte* data, std::size_t capacity, std::uint32_t tag) noexcept override;
  // Slots that are neither posted nor free: lent, or holding a message that waits.
  [[nodiscard]] std::uint32_t kept() const noexcept {
    return static_cast<std::uint32_t>(slots_.size() - free_.size()) - posted_;
  }
  // So many are kept that a payload should be copied out rather than lent: three quarters of the spare ones,
  // the one it lies in included.
  [[nodiscard]] bool scarce() const noexcept { return kept() > spare_ - spare_ / 4; }
  [[nodiscard]] std::uint32_t lent() const noexcept { return lent_; }
  [[nodiscard]] std::uint32_t spare() const noexcept { return spare_; }

 private:
  ReceivePool(Arena& arena, SlotListener& listener, const Limits& limits);
  Result<> grow();

  Arena& arena_;
  SlotListener& listener_;
  Limits limits_;
  std::uint32_t spare_;
  std::unique_ptr<fabric::SharedReceiveQueue> queue_;
  std::vector<Buffer> blocks_;
  std::vector<fabric::Sge> slots_;   // where each slot lies; never moves, staged requests point into it
  std::vector<std::uint32_t> free_;  // a stack: the slot used last is the one in cache
  std::vector<fabric::RecvWr> staged_;
  std::uint32_t rkey_ = 0;
  std::uint32_t reserved_ = 0;
  std::uint32_t posted_ = 0;
  std::uint32_t lent_ = 0;
};

}  // namespace bx::engine
