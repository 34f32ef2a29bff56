// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/receive_pool.h"

#include <algorithm>

#include "libbx/base/check.h"
#include "libbx/engine/wr_id.h"

namespace bx::engine {
namespace {

constexpr std::size_t kBlockBytes = Arena::kPieceMax;  // slots are taken from the arena this much at a time

}  // namespace

ReceivePool::ReceivePool(Arena& arena, SlotListener& listener, const Limits& limits)
    : arena_(arena), listener_(listener), limits_(limits), spare_(limits.spare) {
  slots_.reserve(limits.slots_max);
  free_.reserve(limits.slots_max);
  staged_.reserve(limits.slots_max);
}

Result<std::unique_ptr<ReceivePool>> ReceivePool::create(fabric::Device& device, Arena& arena,
                                                         SlotListener& listener, const Limits& limits) {
  std::unique_ptr<ReceivePool> pool(new ReceivePool(arena, listener, limits));
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
  const std::size_t wanted = std::size_t{reserved_} + spare_;
  if (wanted > limits_.slots_max) {
    reserved_ -= count;
    return fail(ErrorCode::exhausted, ErrorScope::session, "no receive slots are left: peers.max is reached");
  }
  while (slots_.size() < wanted || posted_ + free_.size() < posted_wanted) {
    if (auto grown = grow(); !grown) {
      reserved_ -= count;
      return grown;
    }
  }
  return {};
}

Result<> ReceivePool::grow() {
  const std::size_t room = limits_.slots_max - slots_.size();
  if (room == 0) {
    return fail(ErrorCode::exhausted, ErrorScope::session,
                "the receive slots left are in the application's hands: credits.spare_slots");
  }
  const std::size_t count = std::min(room, std::max<std::size_t>(1, kBlockBytes / limits_.slot_bytes));
  auto block = arena_.allocate_pinned(count * limits_.slot_bytes);
  if (!block) return tl::unexpected<Error>(block.error());
  for (std::size_t i = 0; i < count; ++i) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.push_back({reinterpret_cast<std::uint64_t>(block->data() + i * limits_.slot_bytes),
                      limits_.slot_bytes, fabric::LKey{block->lkey()}});
  }
  rkey_ = block->rkey();
  blocks_.push_back(std::move(*block));
  return {};
}

bool ReceivePool::post() noexcept {
  if (free_.empty()) return false;
  post_again(free_.back());
  free_.pop_back();
  return true;
}

void ReceivePool::post_again(std::uint32_t slot) noexcept {
  staged_.push_back({encode({WrKind::receive, 0, slot}), {&slots_[slot], 1}});
  ++posted_;
}

ReceivePool::Flushed ReceivePool::flush() noexcept {
  if (staged_.empty()) return {0, 0};
  const std::size_t taken = queue_->post_recv(staged_);
  BX_CHECK(taken == staged_.size(), "the receive queue is smaller than the slots it was made for");
  staged_.clear();
  return {static_cast<std::uint32_t>(taken), 1};
}

std::span<const std::byte> ReceivePool::consumed(std::uint32_t slot, std::uint32_t bytes) noexcept {
  BX_CHECK(slot < slots_.size() && posted_ > 0, "a completion names a receive slot that is not posted");
  --posted_;
  const fabric::Sge& place = slots_[slot];
  return {reinterpret_cast<const std::byte*>(place.addr), std::min(bytes, place.length)};
}

void ReceivePool::release(std::uint32_t slot) noexcept {
  free_.push_back(slot);
  listener_.on_slot_free(slot);
}

Buffer ReceivePool::lend(std::uint32_t slot, std::size_t offset, std::size_t size) noexcept {
  ++lent_;
  const fabric::Sge& place = slots_[slot];
  return wrap({.data = reinterpret_cast<std::byte*>(place.addr) + offset,
               .size = size,
               .capacity = place.length - offset,
               .lkey = static_cast<std::uint32_t>(place.lkey),
               .rkey = rkey_,
               .tag = slot});
}

void ReceivePool::reclaim(std::byte* /*data*/, std::size_t /*capacity*/, std::uint32_t tag) noexcept {
  --lent_;
  release(tag);
}

}  // namespace bx::engine
