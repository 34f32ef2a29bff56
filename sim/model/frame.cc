// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/frame.h"

#include <algorithm>
#include <new>

namespace bx::sim {

const Frame FramePool::kFresh{};

void FramePool::free_contents(Frame& frame) noexcept {
  if (frame.kind == FrameKind::ip) {
    frame.rider->release();
    frame.rider = nullptr;
  } else {
    free_payload(frame.payload);
    frame.payload = nullptr;
  }
}

std::size_t FramePool::payloads_in_use() const noexcept {
  std::size_t count = payload_slabs_.size() * kSlab;
  for (const PayloadSlot* slot = free_payloads_; slot != nullptr; slot = slot->next) --count;
  return count;
}

void FramePool::reserve(std::size_t frames, std::size_t payloads) {
  while (frames_ < frames) add_frames();
  while (payload_slabs_.size() * kSlab < payloads) add_payloads();
}

void FramePool::add_frames() {
  // Twice as many as there are, up to a huge page of them.
  const std::size_t count = std::min(std::max(frames_, kSlab), kSlabMax);
  frame_slabs_.emplace_back(count);
  Frame* slab = frame_slabs_.back().data();
  for (std::size_t i = count; i > 0; --i) {
    Frame* frame = new (&slab[i - 1]) Frame;
    frame->next = free_frames_;
    free_frames_ = frame;
  }
  frames_ += count;
}

void FramePool::add_payloads() {
  payload_slabs_.push_back(std::make_unique_for_overwrite<PayloadSlot[]>(kSlab));
  PayloadSlot* slab = payload_slabs_.back().get();
  for (std::size_t i = kSlab; i > 0; --i) {
    slab[i - 1].next = free_payloads_;
    free_payloads_ = &slab[i - 1];
  }
}

}  // namespace bx::sim
