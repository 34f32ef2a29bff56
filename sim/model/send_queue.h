// SPDX-License-Identifier: GPL-2.0-only
// The memory of a send queue: its entries, their segments and their inline payloads, one block that the queue
// holds from its first entry until the last is free. Entries are named by an index that counts from the queue
// pair's creation and never wraps.
//
//   freed_  ..  head          ..           rung_        ..       tail_   <= freed_ + depth
//   completed,   outstanding: known to      written by software,
//   not polled   the NIC (see RcRequester)  doorbell not rung
//
// A slot is free again only when a completion of it, or of a later entry, has been polled.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "libbx/base/check.h"
#include "sim/model/block_pool.h"
#include "sim/model/memory_table.h"
#include "sim/model/prefetch.h"
#include "sim/model/verbs_types.h"

namespace bx::sim {

struct SendQueueConfig {
  std::uint32_t depth = 0;
  std::uint32_t segments_max = 1;
  std::uint32_t inline_max = 0;
};

struct SendEntry {
  std::uint64_t id = 0;
  std::uint64_t length = 0;  // of the whole message
  std::uint64_t remote_addr = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint64_t first = 0;    // position of its first PSN, once started
  Picoseconds visible_at{};   // when the NIC has fetched it
  std::uint32_t packets = 0;  // PSNs it takes: its own packets, or those of its READ response
  std::uint32_t rkey = 0;
  std::uint32_t imm = 0;
  std::uint32_t segment_count = 0;
  RequestOpcode opcode = RequestOpcode::send;
  bool signaled = false;
  bool inlined = false;
  bool fenced = false;
  bool solicited = false;
  bool started = false;  // has its PSNs
};

class SendQueue {
 public:
  // `blocks` outlives the queue.
  SendQueue(BlockPool& blocks, const SendQueueConfig& config)
      : blocks_(blocks), config_(config), mask_(std::bit_ceil(std::max<std::size_t>(config.depth, 1)) - 1) {
    blocks_.join(block_bytes());
  }
  ~SendQueue() {
    release();
    blocks_.leave(block_bytes());
  }
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  [[nodiscard]] bool full() const noexcept { return tail_ - freed_ == config_.depth; }
  [[nodiscard]] std::uint64_t tail() const noexcept { return tail_; }
  [[nodiscard]] std::uint64_t rung() const noexcept { return rung_; }
  [[nodiscard]] SendEntry& operator[](std::uint64_t index) noexcept { return entries_[index & mask_]; }
  [[nodiscard]] const SendEntry& operator[](std::uint64_t index) const noexcept {
    return entries_[index & mask_];
  }

  // An entry that will be looked at, from memory.
  void prefetch(std::uint64_t index) const noexcept {
    if (entries_ == nullptr) return;
    sim::prefetch(&(*this)[index], sizeof(SendEntry));
    sim::prefetch(segments() + (index & mask_) * config_.segments_max);
  }
  // Appends an entry; the caller fills in what depends on the path. Not on a full queue.
  SendEntry& push(const SendRequest& request) {
    BX_CHECK(request.segments.size() <= config_.segments_max,
             "a send has more segments than its queue takes");
    if (entries_ == nullptr) take();
    const std::size_t slot = tail_++ & mask_;
    SendEntry& entry = *new (&entries_[slot]) SendEntry;
    entry = {.id = request.id,
             .length = total_length(request.segments),
             .remote_addr = request.remote_addr,
             .compare_add = request.compare_add,
             .swap = request.swap,
             .rkey = request.rkey,
             .imm = request.imm,
             .segment_count = static_cast<std::uint32_t>(request.segments.size()),
             .opcode = request.opcode,
             .signaled = request.signaled,
             .inlined = request.inlined && !returns_data(request.opcode),
             .fenced = request.fenced,
             .solicited = request.solicited};
    if (entry.inlined) {
      copy_inline(slot, request.segments);
    } else {
      std::copy(request.segments.begin(), request.segments.end(), segments() + slot * config_.segments_max);
    }
    return entry;
  }
  // The doorbell: the oldest `entries` of those posted become the NIC's, which will have fetched them at
  // `visible_at`.
  void ring(Picoseconds visible_at, std::uint64_t entries = UINT64_MAX) noexcept {
    for (; rung_ != tail_ && entries > 0; ++rung_, --entries) (*this)[rung_].visible_at = visible_at;
  }
  // The completion of `index` was polled; entries before `head` are complete.
  void free_through(std::uint64_t index, std::uint64_t head) noexcept {
    if (index >= freed_ && index < head) freed_ = index + 1;
    if (freed_ == tail_) release();
  }
  // Everything is gone: for a reset.
  void clear() noexcept {
    freed_ = rung_ = tail_;
    release();
  }

  [[nodiscard]] std::span<const Segment> segments(std::uint64_t index) const noexcept {
    const std::size_t slot = index & mask_;
    return {segments() + slot * config_.segments_max, entries_[slot].segment_count};
  }
  [[nodiscard]] std::span<const std::byte> inline_bytes(std::uint64_t index) const noexcept {
    const std::size_t slot = index & mask_;
    return {inline_bytes() + slot * config_.inline_max, entries_[slot].length};
  }

 private:
  // Of the block: the entries, then segments_max segments a slot, then inline_max bytes a slot.
  [[nodiscard]] std::size_t slots() const noexcept { return mask_ + 1; }
  [[nodiscard]] std::size_t block_bytes() const noexcept {
    return slots() * (sizeof(SendEntry) + config_.segments_max * sizeof(Segment) + config_.inline_max);
  }
  [[nodiscard]] Segment* segments() const noexcept { return reinterpret_cast<Segment*>(entries_ + slots()); }
  [[nodiscard]] std::byte* inline_bytes() const noexcept {
    return reinterpret_cast<std::byte*>(segments() + slots() * config_.segments_max);
  }
  void take() { entries_ = static_cast<SendEntry*>(blocks_.take(block_bytes())); }
  void release() noexcept {
    if (entries_ == nullptr) return;
    blocks_.give(entries_, block_bytes());
    entries_ = nullptr;
  }
  void copy_inline(std::size_t slot, std::span<const Segment> segments) {
    BX_CHECK(entries_[slot].length <= config_.inline_max, "more inline bytes than the queue takes");
    std::byte* out = inline_bytes() + slot * config_.inline_max;
    for (const Segment& segment : segments) {
      if (segment.length == 0) continue;
      std::memcpy(out, memory_at(segment.addr), segment.length);
      out += segment.length;
    }
  }

  BlockPool& blocks_;
  SendQueueConfig config_;
  std::size_t mask_;              // a power of two of slots: an index finds its slot without a division
  SendEntry* entries_ = nullptr;  // the block; null while nothing is in the queue
  std::uint64_t freed_ = 0;
  std::uint64_t rung_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace bx::sim
