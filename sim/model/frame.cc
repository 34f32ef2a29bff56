// SPDX-License-Identifier: GPL-2.0-only
#include "sim/model/frame.h"

#include "libbx/base/check.h"

namespace bx::sim {

Frame* FramePool::make() {
  if (free_frames_ == nullptr) add_frames();
  Frame* frame = free_frames_;
  free_frames_ = frame->next;
  *frame = Frame{};
  ++in_use_;
  return frame;
}

Payload* FramePool::make_payload() {
  if (free_payloads_ == nullptr) add_payloads();
  PayloadSlot* slot = free_payloads_;
  free_payloads_ = slot->next;
  return new (&slot->payload) Payload;  // starts its lifetime; writes nothing
}

void FramePool::free(Frame* frame) noexcept {
  BX_CHECK(in_use_ > 0, "more frames freed than made");
  if (frame->kind == FrameKind::ip) {
    if (frame->rider != nullptr) frame->rider->release();
    frame->rider = nullptr;
  } else if (frame->payload != nullptr) {
    free_payload(frame->payload);
    frame->payload = nullptr;
  }
  frame->next = free_frames_;
  free_frames_ = frame;
  --in_use_;
}

void FramePool::free_payload(Payload* payload) noexcept {
  // A payload lives at the address of its slot, as every member of a union does.
  auto* slot = reinterpret_cast<PayloadSlot*>(payload);
  slot->next = free_payloads_;
  free_payloads_ = slot;
}

std::size_t FramePool::payloads_in_use() const noexcept {
  std::size_t count = payload_slabs_.size() * kSlab;
  for (const PayloadSlot* slot = free_payloads_; slot != nullptr; slot = slot->next) --count;
  return count;
}

void FramePool::reserve(std::size_t frames, std::size_t payloads) {
  while (frame_slabs_.size() * kSlab < frames) add_frames();
  while (payload_slabs_.size() * kSlab < payloads) add_payloads();
}

void FramePool::add_frames() {
  frame_slabs_.push_back(std::make_unique<Frame[]>(kSlab));
  Frame* slab = frame_slabs_.back().get();
  for (std::size_t i = kSlab; i > 0; --i) {
    slab[i - 1].next = free_frames_;
    free_frames_ = &slab[i - 1];
  }
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
