// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/engine/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "libbx/base/check.h"

namespace bx::engine {
namespace {

void* map_pages(std::size_t bytes) noexcept {
  void* p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
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
  if (arena->pieces_ == nullptr) {
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
      pieces_(static_cast<Piece*>(map_pages(chunks * kPiecesMax * sizeof(Piece)))) {
  open_.fill(&nothing_);
}

Arena::~Arena() {
  BX_CHECK(bytes_in_use() == 0, "a buffer outlived its worker");
  region_.reset();
  for (auto& list : partial_) list.clear();
  if (pieces_ != nullptr) ::munmap(pieces_, chunks_.size() * kPiecesMax * sizeof(Piece));
  ::munmap(base_, chunks_.size() * kChunkBytes);
}

Result<Buffer> Arena::allocate_otherwise(std::size_t size) noexcept {
  if (size == 0) return Buffer{};
  if (size > capacity()) return fail(ErrorCode::too_large, ErrorScope::operation, "more than memory.arena");
  if (size > kPieceMax) return allocate_run(size);
  Chunk* chunk = chunk_with_piece(class_of(size));
  if (chunk == nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::operation, "memory.arena is used up");
  }
  return take(*chunk, *chunk->free, size);
}

Result<Buffer> Arena::allocate_pinned(std::size_t size) noexcept {
  auto buffer = allocate(size);
  if (!buffer || buffer->block() == nullptr) return buffer;
  auto& piece = static_cast<Piece&>(*buffer->block());
  piece.next = &kept_;
  const bool run = piece.chunk->use == ChunkUse::run_head;
  const std::uint32_t count = run ? piece.chunk->pieces_out : 1;
  for (std::uint32_t i = 0; i < count; ++i) ++(piece.chunk + i)->pinned;
  return buffer;
}

bool Arena::could_hold(std::size_t size) const noexcept {
  if (size == 0) return true;
  const std::size_t count = size <= kPieceMax ? 1 : (size - 1) / kChunkBytes + 1;
  std::size_t length = 0;
  for (const Chunk& chunk : chunks_) {
    const bool shared = size <= kPieceMax && chunk.use == ChunkUse::pieces &&
                        chunk.size_class == class_of(size) && chunk.pinned < pieces_of(chunk);
    length = chunk.pinned == 0 ? length + 1 : 0;
    if (shared || length == count) return true;
  }
  return false;
}

Arena::Chunk* Arena::chunk_with_piece(std::size_t size_class) noexcept {
  while (Chunk* chunk = partial_[size_class].front()) {
    if (chunk->free != nullptr) return chunk;
    if (chunk->pieces_made < pieces_of(*chunk)) {
      Piece& piece = make_piece(*chunk, chunk->pieces_made++, class_bytes(size_class));
      chunk->free = &piece;
      return chunk;
    }
    unlink(*chunk);
  }
  Chunk* fresh = claim(1);
  if (fresh == nullptr) return nullptr;
  fresh->use = ChunkUse::pieces;
  fresh->size_class = static_cast<std::uint8_t>(size_class);
  link(*fresh);
  return chunk_with_piece(size_class);
}

Result<Buffer> Arena::allocate_run(std::size_t size) noexcept {
  const std::size_t count = (size + kChunkBytes - 1) / kChunkBytes;
  Chunk* head = claim(count);
  if (head == nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::operation, "memory.arena has no free run of that length");
  }
  for (std::size_t i = 0; i < count; ++i) (head + i)->use = ChunkUse::run_rest;
  head->use = ChunkUse::run_head;
  head->pieces_out = static_cast<std::uint32_t>(count);
  Piece& run = make_piece(*head, 0, count * kChunkBytes);
  run.next = &kept_;
  return Result<Buffer>(tl::in_place, run, run.data, size);
}

Arena::Piece& Arena::make_piece(Chunk& chunk, std::size_t number, std::size_t capacity) noexcept {
  const auto index = static_cast<std::size_t>(&chunk - chunks_.data());
  Piece& piece = pieces_[index * kPiecesMax + number];
  new (&piece) Piece{{.owner = this,
                      .data = base_ + index * kChunkBytes + number * capacity,
                      .capacity = capacity,
                      .lkey = static_cast<std::uint32_t>(region_->lkey()),
                      .rkey = static_cast<std::uint32_t>(region_->rkey())},
                     &chunk,
                     nullptr};
  return piece;
}

// What is not an ordinary piece that is out.
void Arena::reclaim_otherwise(Piece& piece) noexcept {
  BX_CHECK(piece.next == &kept_, "a buffer was released twice");
  Chunk& chunk = *piece.chunk;
  if (chunk.use == ChunkUse::pieces) {
    --chunk.pinned;
    piece.next = &piece;
    return reclaim(piece);
  }
  piece.next = nullptr;
  const std::uint32_t count = chunk.pieces_out;
  for (std::uint32_t i = 0; i < count; ++i) reset(*(&chunk + i));
  if (listener_ != nullptr) listener_->on_memory_free();
}

// First fit from the low end, which keeps the high end free for long runs.
Arena::Chunk* Arena::claim(std::size_t count) noexcept {
  std::size_t length = 0;
  for (Chunk& chunk : chunks_) {
    length = idle(chunk) ? length + 1 : 0;
    if (length < count) continue;
    Chunk* const head = &chunk + 1 - count;
    for (std::size_t i = 0; i < count; ++i) reset(*(head + i));
    claimed_ += count;
    claimed_peak_ = std::max(claimed_peak_, claimed_);
    return head;
  }
  return nullptr;
}

void Arena::reset(Chunk& chunk) noexcept {
  if (chunk.linked()) unlink(chunk);
  if (chunk.use != ChunkUse::unused) --claimed_;
  chunk.use = ChunkUse::unused;
  chunk.pieces_out = chunk.pieces_made = chunk.pinned = 0;
  chunk.free = nullptr;
}

void Arena::link(Chunk& chunk) noexcept {
  partial_[chunk.size_class].push_front(chunk);
  open_[chunk.size_class] = &chunk;
}

void Arena::unlink(Chunk& chunk) noexcept {
  chunk.ListHook<>::unlink();
  Chunk* first = partial_[chunk.size_class].front();
  open_[chunk.size_class] = first != nullptr ? first : &nothing_;
}

std::uint64_t Arena::bytes_in_use() const noexcept {
  std::uint64_t total = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.use == ChunkUse::pieces) total += chunk.pieces_out * class_bytes(chunk.size_class);
    if (chunk.use == ChunkUse::run_head) total += chunk.pieces_out * kChunkBytes;
  }
  return total;
}

void Arena::check_invariants() const {
  std::size_t claimed = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.use != ChunkUse::unused) ++claimed;
    if (chunk.use != ChunkUse::pieces) continue;
    std::size_t free = 0;
    for (const Piece* piece = chunk.free; piece != nullptr; piece = piece->next) ++free;
    BX_CHECK(chunk.pieces_made <= pieces_of(chunk) && chunk.pieces_out + free == chunk.pieces_made,
             "chunk_pieces_counted");
    BX_CHECK(chunk.pinned <= chunk.pieces_out, "pinned_pieces_counted");
    BX_CHECK(chunk.linked() || chunk.pieces_out == pieces_of(chunk), "open_chunks_listed");
  }
  BX_CHECK(claimed == claimed_, "chunks_counted");
}

}  // namespace bx::engine
