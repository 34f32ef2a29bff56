// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/loss_recovery.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "libbx/base/check.h"

namespace bx::sim {

void ReorderBuffer::start(std::uint32_t window) {
  BX_CHECK(size_ == 0, "a reorder buffer starts empty");
  window_ = window;
  slots_.assign(std::bit_ceil(std::size_t{window} + 1), {});
}

bool ReorderBuffer::keep(FramePool& pool, std::uint64_t expected, std::uint64_t position,
                         const Frame& frame) {
  if (position - expected > window_) return false;
  if (holds(position)) return false;
  (void)take(pool, position);  // whatever else is in its slot
  Frame* copy = pool.make();
  *copy = frame;
  copy->next = nullptr;
  if (frame.payload != nullptr) {
    copy->payload = pool.make_payload();
    std::memcpy(copy->payload->bytes.data(), frame.payload->bytes.data(), frame.payload_bytes);
  }
  slots_[position & (slots_.size() - 1)] = {copy, position};
  ++size_;
  return true;
}

Frame* ReorderBuffer::take(FramePool& pool, std::uint64_t position) noexcept {
  Slot& slot = slots_[position & (slots_.size() - 1)];
  if (slot.frame == nullptr) return nullptr;
  Frame* frame = slot.frame;
  slot.frame = nullptr;
  --size_;
  if (slot.position == position) return frame;
  pool.free(frame);  // of a position that a READ has taken: no honest peer sends it
  return nullptr;
}

void ReorderBuffer::write_map(std::uint64_t expected, std::byte* out) const noexcept {
  std::memset(out, 0, kReceivedMapBytes);
  for (std::uint32_t i = 0; i < kReceivedMapBits; ++i) {
    if (holds(expected + 1 + i)) out[i / 8] |= static_cast<std::byte>(1U << (i % 8));
  }
}

void ReorderBuffer::clear(FramePool& pool) noexcept {
  if (size_ == 0) return;
  for (Slot& slot : slots_) {
    if (slot.frame != nullptr) pool.free(slot.frame);
    slot.frame = nullptr;
  }
  size_ = 0;
}

void LossMap::start(std::uint32_t window, std::uint64_t first) {
  flags_.assign(std::bit_ceil(std::size_t{window} + 1), 0);
  base_ = first;
  waiting_ = 0;
}

void LossMap::mark_received(std::uint64_t position) noexcept {
  if (!knows(position)) return;
  std::uint8_t& flags = at(position);
  if ((flags & kWaiting) != 0) --waiting_;
  flags = static_cast<std::uint8_t>((flags | kReceived) & ~kWaiting);
}

void LossMap::mark_lost(std::uint64_t position) noexcept {
  if (!knows(position) || at(position) != 0) return;
  at(position) = kRepeated | kWaiting;
  ++waiting_;
}

std::uint64_t LossMap::take_lost() noexcept {
  BX_CHECK(waiting_ > 0, "nothing waits to be sent again");
  std::uint64_t position = base_;
  while ((at(position) & kWaiting) == 0) ++position;
  at(position) = kRepeated;
  --waiting_;
  return position;
}

void LossMap::acknowledge_below(std::uint64_t position) noexcept {
  const std::uint64_t end = std::min(position, base_ + flags_.size());
  for (; base_ < end; ++base_) {
    if ((at(base_) & kWaiting) != 0) --waiting_;
    at(base_) = 0;
  }
  base_ = std::max(base_, position);
}

void LossMap::clear() noexcept {
  std::fill(flags_.begin(), flags_.end(), std::uint8_t{0});
  waiting_ = 0;
}

}  // namespace bx::sim
