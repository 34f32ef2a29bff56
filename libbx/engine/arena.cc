// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "libbx/base/check.h"

namespace bx::engine {
namespace {

void* map_pages(std::size_t bytes) noexcept {
  void* p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

std::size_t class_of(std::size_t size) noexcept {
  return static_cast<std::size_t>(std::bit_width((std::max(size, Arena::kPieceMin) - 1) / Arena::kPieceMin));
}

std::size_t class_bytes(std::size_t size_class) noexcept {
  return Arena::kPieceMin << size_class;
}

}  // namespace

Result<std::unique_ptr<Arena>> Arena::create(fabric::Device& device, std::uint64_t bytes) {
  const std::size_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  void* base = map_pages(chunks * kChunkBytes);
  if (base == nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::device,
                "memory.arena: the address space could not be mapped", errno);
  }
  std::unique_ptr<Arena> arena(new Arena(static_cast<std::byte*>(base), chunks));
  if (arena->bitmaps_ == nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::device, "memory.arena: no memory for its tables", errno);
  }
  auto region = device.register_memory({arena->base_, chunks * kChunkBytes},
                                       fabric::Access::remote_read | fabric::Access::remote_write);
  if (!region) return tl::unexpected<Error>(region.error());
  arena->region_ = std::move(*region);
  return arena;
}

Arena::Arena(std::byte* base, std::size_t chunks)
    : base_(base),
      chunks_(chunks),
      bitmaps_(static_cast<std::uint64_t*>(map_pages(chunks * (kPiecesMax / 8)))) {
  open_chunks_.fill(kNone);
}

Arena::~Arena() {
  BX_CHECK(in_use_ == 0, "a buffer outlived its worker");
  region_.reset();
  if (bitmaps_ != nullptr) ::munmap(bitmaps_, chunks_.size() * (kPiecesMax / 8));
  ::munmap(base_, chunks_.size() * kChunkBytes);
}

Result<Buffer> Arena::allocate(std::size_t size) noexcept {
  if (size == 0) return Buffer{};
  if (size > capacity()) return fail(ErrorCode::too_large, ErrorScope::operation, "more than memory.arena");
  return size <= kPieceMax ? allocate_piece(size, 0) : allocate_run(size, 0);
}

Result<Buffer> Arena::allocate_pinned(std::size_t size) noexcept {
  if (size == 0) return Buffer{};
  if (size > capacity()) return fail(ErrorCode::too_large, ErrorScope::operation, "more than memory.arena");
  return size <= kPieceMax ? allocate_piece(size, kPinnedTag) : allocate_run(size, kPinnedTag);
}

bool Arena::could_hold(std::size_t size) const noexcept {
  if (size == 0) return true;
  const std::size_t count = size <= kPieceMax ? 1 : (size - 1) / kChunkBytes + 1;
  std::size_t length = 0;
  for (const Chunk& chunk : chunks_) {
    const bool shared = size <= kPieceMax && chunk.use == ChunkUse::pieces &&
                        chunk.size_class == class_of(size) &&
                        chunk.pinned < kChunkBytes / class_bytes(chunk.size_class);
    length = chunk.pinned == 0 ? length + 1 : 0;
    if (shared || length == count) return true;
  }
  return false;
}

Result<Buffer> Arena::allocate_piece(std::size_t size, std::uint32_t pin) noexcept {
  const std::size_t size_class = class_of(size);
  std::uint32_t index = open_chunks_[size_class];
  if (index == kNone) {
    index = find_run(1);
    if (index == kNone) return fail(ErrorCode::exhausted, ErrorScope::operation, "memory.arena is used up");
    Chunk& fresh = chunks_[index];
    fresh.use = ChunkUse::pieces;
    fresh.size_class = static_cast<std::uint8_t>(size_class);
    fresh.scan_from = 0;
    link(index);
  }
  Chunk& chunk = chunks_[index];
  const std::size_t pieces = kChunkBytes / class_bytes(size_class);
  std::uint64_t* words = bitmap(index);
  std::size_t word = chunk.scan_from;
  while (words[word] == ~std::uint64_t{0}) ++word;
  chunk.scan_from = static_cast<std::uint32_t>(word);
  const std::size_t piece = word * 64 + static_cast<std::size_t>(std::countr_one(words[word]));
  BX_CHECK(piece < pieces, "a chunk on the open list has no free piece");
  words[word] |= std::uint64_t{1} << (piece % 64);
  if (pin != 0) ++chunk.pinned;
  if (++chunk.pieces_out == pieces) unlink(index);
  const std::size_t capacity = class_bytes(size_class);
  return lease(base_ + index * kChunkBytes + piece * capacity, size, capacity, index | pin);
}

Result<Buffer> Arena::allocate_run(std::size_t size, std::uint32_t pin) noexcept {
  const std::size_t count = (size + kChunkBytes - 1) / kChunkBytes;
  const std::uint32_t head = find_run(count);
  if (head == kNone) {
    return fail(ErrorCode::exhausted, ErrorScope::operation, "memory.arena has no free run of that length");
  }
  for (std::size_t i = 0; i < count; ++i) {
    chunks_[head + i].use = ChunkUse::run_rest;
    chunks_[head + i].pinned = pin != 0 ? 1 : 0;
  }
  chunks_[head].use = ChunkUse::run_head;
  chunks_[head].pieces_out = static_cast<std::uint32_t>(count);
  return lease(base_ + head * kChunkBytes, size, count * kChunkBytes, head | pin);
}

Buffer Arena::lease(std::byte* data, std::size_t size, std::size_t capacity, std::uint32_t tag) noexcept {
  in_use_ += capacity;
  peak_ = std::max(peak_, in_use_);
  return wrap({.data = data,
               .size = size,
               .capacity = capacity,
               .lkey = static_cast<std::uint32_t>(region_->lkey()),
               .rkey = static_cast<std::uint32_t>(region_->rkey()),
               .tag = tag});
}

void Arena::reclaim(std::byte* data, std::size_t capacity, std::uint32_t tag) noexcept {
  const std::uint32_t index = tag & ~kPinnedTag;
  in_use_ -= capacity;
  Chunk& chunk = chunks_[index];
  if (chunk.use == ChunkUse::pieces) {
    if (tag != index) --chunk.pinned;
    reclaim_piece(index, data);
  } else {
    BX_CHECK(chunk.use == ChunkUse::run_head, "a buffer came back to a chunk that gave out none");
    const std::uint32_t count = chunk.pieces_out;
    for (std::uint32_t i = 0; i < count; ++i) chunks_[index + i] = Chunk{};
  }
  if (listener_ != nullptr) listener_->on_memory_free();
}

void Arena::reclaim_piece(std::uint32_t index, const std::byte* data) noexcept {
  Chunk& chunk = chunks_[index];
  const std::size_t bytes = class_bytes(chunk.size_class);
  const std::size_t piece = static_cast<std::size_t>(data - (base_ + index * kChunkBytes)) / bytes;
  std::uint64_t& word = bitmap(index)[piece / 64];
  const std::uint64_t bit = std::uint64_t{1} << (piece % 64);
  BX_CHECK((word & bit) != 0, "a buffer was released twice");
  word &= ~bit;
  chunk.scan_from = std::min(chunk.scan_from, static_cast<std::uint32_t>(piece / 64));
  if (!chunk.listed) link(index);
  if (--chunk.pieces_out > 0) return;
  unlink(index);
  chunk = Chunk{};
}

// First fit from the low end, which keeps the high end free for long runs.
std::uint32_t Arena::find_run(std::size_t count) const noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    length = chunks_[i].use == ChunkUse::unused ? length + 1 : 0;
    if (length == count) return static_cast<std::uint32_t>(i + 1 - count);
  }
  return kNone;
}

void Arena::link(std::uint32_t index) noexcept {
  Chunk& chunk = chunks_[index];
  std::uint32_t& head = open_chunks_[chunk.size_class];
  chunk.prev = kNone;
  chunk.next = head;
  chunk.listed = true;
  if (head != kNone) chunks_[head].prev = index;
  head = index;
}

void Arena::unlink(std::uint32_t index) noexcept {
  Chunk& chunk = chunks_[index];
  if (chunk.next != kNone) chunks_[chunk.next].prev = chunk.prev;
  (chunk.prev != kNone ? chunks_[chunk.prev].next : open_chunks_[chunk.size_class]) = chunk.next;
  chunk.next = chunk.prev = kNone;
  chunk.listed = false;
}

void Arena::check_invariants() const {
  std::uint64_t total = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.use == ChunkUse::pieces) {
      const std::size_t pieces = kChunkBytes / class_bytes(chunk.size_class);
      BX_CHECK(chunk.pieces_out > 0 && chunk.pieces_out <= pieces, "chunk_pieces_counted");
      BX_CHECK(chunk.pinned <= chunk.pieces_out, "pinned_pieces_counted");
      BX_CHECK(chunk.listed == (chunk.pieces_out < pieces), "open_chunks_listed");
      total += chunk.pieces_out * class_bytes(chunk.size_class);
    } else if (chunk.use == ChunkUse::run_head) {
      total += chunk.pieces_out * kChunkBytes;
    }
  }
  BX_CHECK(total == in_use_, "arena_bytes_conserved");
}

}  // namespace bx::engine
