// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/receive_pool.h"

#include <algorithm>

#include "libbx/engine/wr_id.h"

namespace bx::engine {
namespace {

constexpr std::size_t kBlockBytes = memory::kPieceMax;  // slots are taken from the arena this much at a time

std::size_t slots_of_block(std::uint64_t slot_bytes) noexcept {
  return std::max<std::size_t>(1, kBlockBytes / slot_bytes);
}

}  // namespace

std::uint64_t ReceivePool::memory_of(std::uint64_t slots, std::uint64_t slot_bytes) noexcept {
  const std::uint64_t each = slots_of_block(slot_bytes);
  return (slots + each - 1) / each * kBlockBytes;
}

ReceivePool::ReceivePool(memory::Arena& arena, const Limits& limits)
    : arena_(arena),
      limits_(limits),
      lendable_((limits.spare * limits.lend_percent + 99) / 100),
      slots_(std::make_unique<Slot[]>(limits.slots_max)),
      free_(std::make_unique<Slot*[]>(limits.slots_max)),
      staged_(std::make_unique<fabric::RecvWr[]>(limits.slots_max)),
      staged_end_(staged_.get()) {}

Result<std::unique_ptr<ReceivePool>> ReceivePool::create(fabric::Device& device, memory::Arena& arena,
                                                         const Limits& limits) {
  std::unique_ptr<ReceivePool> pool(new ReceivePool(arena, limits));
  auto queue = device.create_srq({.depth = limits.slots_max, .sges_max = 1});
  if (!queue) return tl::unexpected<Error>(queue.error());
  pool->queue_ = std::move(*queue);
  return pool;
}

ReceivePool::~ReceivePool() {
  BX_CHECK(lent_ == 0, "a buffer outlived its worker");
}

Result<> ReceivePool::reserve(std::uint32_t count, std::uint32_t posted_wanted) {
  reserved_ += count;
  const std::size_t wanted = std::size_t{reserved_} + limits_.spare;
  if (wanted > limits_.slots_max) {
    reserved_ -= count;
    return fail(ErrorCode::exhausted, ErrorScope::session, "no receive slots are left: peers.max is reached");
  }
  while (made_ < wanted || made_ - kept_ < posted_wanted) {
    if (auto grown = grow(); !grown) {
      reserved_ -= count;
      return grown;
    }
  }
  return {};
}

Result<> ReceivePool::grow() {
  const std::size_t room = limits_.slots_max - made_;
  if (room == 0) {
    return fail(ErrorCode::exhausted, ErrorScope::session,
                "the receive slots left are in the application's hands: credits.spare_slots");
  }
  const std::size_t count = std::min(room, slots_of_block(limits_.slot_bytes));
  auto memory = arena_.allocate_pinned(count * limits_.slot_bytes, memory::Side::receive);
  if (!memory) return tl::unexpected<Error>(memory.error());
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = slots_[made_];
    static_cast<Block&>(slot) = {.owner = this,
                                 .data = memory->data() + i * limits_.slot_bytes,
                                 .capacity = limits_.slot_bytes,
                                 .lkey = memory->lkey(),
                                 .rkey = memory->rkey()};
    slot.number = made_;
    slot.place = {reinterpret_cast<std::uint64_t>(slot.data), limits_.slot_bytes, fabric::LKey{slot.lkey}};
    slot.request = {encode({WrKind::receive, 0, made_}), {&slot.place, 1}};
    ++made_;
    free_[free_count_++] = &slot;
  }
  memory_.push_back(std::move(*memory));
  return {};
}

ReceivePool::Flushed ReceivePool::flush_staged() noexcept {
  const std::span<const fabric::RecvWr> staged(staged_.get(), staged_end_);
  const std::size_t taken = queue_->post_recv(staged);
  BX_CHECK(taken == staged.size(), "the receive queue is smaller than the slots it was made for");
  staged_end_ = staged_.get();
  return {static_cast<std::uint32_t>(taken), 1};
}

}  // namespace bx::engine
