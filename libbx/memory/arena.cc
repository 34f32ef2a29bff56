// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/memory/arena.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace bx::memory {

Result<std::unique_ptr<Arena>> Arena::create(fabric::Device& device, SystemMemory& system,
                                             const ArenaConfig& config) {
  auto mapping = PageMapping::create(system, chunks_for(config.bytes) * kChunkBytes, config.pages);
  if (!mapping) return tl::unexpected<Error>(mapping.error());
  std::unique_ptr<Arena> arena(new Arena(system, std::move(*mapping), config));
  if (arena->pieces_ == nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::device, "memory.arena: no memory for its tables", errno);
  }
  auto region = device.register_memory(arena->mapping_.bytes(),
                                       fabric::Access::remote_read | fabric::Access::remote_write);
  if (!region) return tl::unexpected<Error>(region.error());
  arena->region_ = std::move(*region);
  return arena;
}

Arena::Arena(SystemMemory& system, PageMapping mapping, const ArenaConfig& config)
    : system_(system),
      mapping_(std::move(mapping)),
      base_(mapping_.bytes().data()),
      chunks_(mapping_.bytes().size() / kChunkBytes) {
  const std::size_t bytes = chunks_.size() * kEntries * sizeof(Piece);
  entries_ = {system.map(bytes, MapKind::ordinary), bytes};
  pieces_ = reinterpret_cast<Piece*>(entries_.data());
  for (std::size_t side = 0; side < kSides; ++side) {
    const std::size_t quota = config.quota[side] / kChunkBytes;
    quotas_[side].chunks_max = quota == 0 ? chunks_.size() : std::min(quota, chunks_.size());
    open_[side].fill(&nothing_);
  }
}

Arena::~Arena() {
  BX_CHECK(bytes_in_use() == 0, "a buffer outlived its worker");
  region_.reset();
  for (auto& side : partial_) {
    for (auto& list : side) list.clear();
  }
  if (pieces_ != nullptr) system_.unmap(entries_);
}

Result<Buffer> Arena::allocate_otherwise(std::size_t size, Side side) noexcept {
  if (size == 0) return Buffer{};
  Quota& quota = quotas_[index(side)];
  if (size > quota.chunks_max * kChunkBytes) {
    ++quota.failures;
    return fail(ErrorCode::too_large, ErrorScope::operation,
                side == Side::send ? "more than memory.send (MiB)" : "more than memory.receive (MiB)",
                static_cast<int>(quota.chunks_max * kChunkBytes >> 20U));
  }
  if (size > kPieceMax) return allocate_run(size, side);
  Chunk* chunk = chunk_with_piece(class_of(size), side);
  if (chunk == nullptr) {
    ++quota.failures;
    return fail(ErrorCode::exhausted, ErrorScope::operation,
                side == Side::send ? "memory.send is used up" : "memory.receive is used up");
  }
  return take(*chunk, *chunk->free, size);
}

Result<Buffer> Arena::allocate_pinned(std::size_t size, Side side) noexcept {
  auto buffer = allocate(size, side);
  if (!buffer || buffer->block() == nullptr) return buffer;
  auto& piece = static_cast<Piece&>(*buffer->block());
  piece.next = &kept_;
  const bool run = piece.chunk->use == ChunkUse::run_head;
  const std::uint32_t count = run ? piece.chunk->pieces_out : 1;
  for (std::uint32_t i = 0; i < count; ++i) ++(piece.chunk + i)->pinned;
  return buffer;
}

bool Arena::could_hold(std::size_t size, Side side) const noexcept {
  if (size == 0) return true;
  const std::size_t count = size <= kPieceMax ? 1 : chunks_for(size);
  std::size_t length = 0;
  std::size_t pinned = 0;
  bool shared = false;
  bool free_run = false;
  for (const Chunk& chunk : chunks_) {
    const bool own = chunk.side == side && chunk.pinned > 0;
    if (own) ++pinned;
    shared = shared || (own && size <= kPieceMax && chunk.use == ChunkUse::pieces &&
                        chunk.size_class == class_of(size) && chunk.pinned < pieces_of(chunk));
    length = chunk.pinned == 0 ? length + 1 : 0;
    free_run = free_run || length >= count;
  }
  return shared || (free_run && pinned + count <= quotas_[index(side)].chunks_max);
}

void Arena::set_listener(MemoryListener* listener) noexcept {
  if (listener == listener_) return;
  listener_ = listener;
  for (Chunk& chunk : chunks_) chunk.watched = listener != nullptr || !chunk.linked();
}

Arena::Chunk* Arena::chunk_with_piece(std::size_t size_class, Side side) noexcept {
  while (Chunk* chunk = partial_[index(side)][size_class].front()) {
    if (chunk->free != nullptr) return chunk;
    if (chunk->pieces_made < pieces_of(*chunk)) {
      Piece& piece = make_piece(*chunk, chunk->pieces_made++, class_bytes(size_class));
      chunk->free = &piece;
      return chunk;
    }
    unlink(*chunk);
  }
  Chunk* fresh = claim(1, side, Placing::anywhere);
  if (fresh == nullptr) return nullptr;
  fresh->use = ChunkUse::pieces;
  fresh->size_class = static_cast<std::uint8_t>(size_class);
  begin_generation(*fresh, pieces_of(*fresh));
  link(*fresh);
  return chunk_with_piece(size_class, side);
}

// Of its class while less than half of the quota is taken, so that the hole it leaves fits the next; of as
// many chunks as it takes once memory is short.
Result<Buffer> Arena::allocate_run(std::size_t size, Side side) noexcept {
  Quota& quota = quotas_[index(side)];
  std::size_t count = run_class_chunks(size);
  Chunk* head =
      2 * (quota.chunks + count) <= quota.chunks_max ? claim(count, side, Placing::aligned) : nullptr;
  if (head == nullptr) {
    count = chunks_for(size);
    head = claim(count, side, Placing::anywhere);
  }
  if (head == nullptr) {
    ++quota.failures;
    return fail(ErrorCode::exhausted, ErrorScope::operation,
                side == Side::send ? "memory.send has no free run of that length"
                                   : "memory.receive has no free run of that length");
  }
  for (std::size_t i = 0; i < count; ++i) (head + i)->use = ChunkUse::run_rest;
  head->use = ChunkUse::run_head;
  head->pieces_out = static_cast<std::uint32_t>(count);
  begin_generation(*head, 1);
  Piece& run = make_piece(*head, 0, count * kChunkBytes);
  run.next = &kept_;
  return Result<Buffer>(tl::in_place, run, run.data, size);
}

// Aligned to their number, a power of two, so entries of one generation are never those of the one before:
// before the table wraps they lie behind them, and after it the former lie in its second half.
void Arena::begin_generation(Chunk& chunk, std::uint32_t entries) noexcept {
  const std::uint32_t first = (chunk.entry_end + entries - 1) / entries * entries;
  chunk.entry_first = first + entries <= kEntries ? first : 0;
  chunk.entry_end = chunk.entry_first + entries;
}

Arena::Piece& Arena::make_piece(Chunk& chunk, std::size_t number, std::size_t capacity) noexcept {
  const auto at = static_cast<std::size_t>(&chunk - chunks_.data());
  Piece& piece = pieces_[at * kEntries + chunk.entry_first + number];
  new (&piece) Piece{{.owner = this,
                      .data = base_ + at * kChunkBytes + number * capacity,
                      .capacity = capacity,
                      .lkey = static_cast<std::uint32_t>(region_->lkey()),
                      .rkey = static_cast<std::uint32_t>(region_->rkey())},
                     &chunk,
                     nullptr};
  return piece;
}

bool Arena::stale(const Piece& piece) const noexcept {
  const Chunk& chunk = *piece.chunk;
  const auto entry = static_cast<std::size_t>(&piece - pieces_) % kEntries;
  return chunk.use == ChunkUse::unused || chunk.use == ChunkUse::run_rest || entry < chunk.entry_first ||
         entry >= chunk.entry_end;
}

// What is not an ordinary piece that is out.
void Arena::reclaim_otherwise(Piece& piece) noexcept {
  BX_CHECK(piece.next == &kept_ || !stale(piece),
           "a buffer of an earlier generation of its chunk was released: the chunk was reclaimed since");
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

void Arena::reclaim_watched(Chunk& chunk) noexcept {
  if (!chunk.linked()) link(chunk);
  if (listener_ != nullptr) listener_->on_memory_free();
}

// Unused chunks first, so that classes keep theirs while there are others; from the low end, which keeps the
// high end free for long runs.
Arena::Chunk* Arena::claim(std::size_t count, Side side, Placing placing) noexcept {
  Quota& quota = quotas_[index(side)];
  if (count > quota.chunks_max) return nullptr;
  if (quota.chunks + count > quota.chunks_max) trim(side, quota.chunks_max - count);
  if (quota.chunks + count > quota.chunks_max) return nullptr;
  Chunk* head = find(count, placing, Among::unused);
  if (head == nullptr) head = find(count, placing, Among::idle);
  if (head == nullptr) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    if ((head + i)->use == ChunkUse::pieces) ++reclaims_;
    reset(*(head + i));
    (head + i)->side = side;
  }
  while (unused_first_ < chunks_.size() && &chunks_[unused_first_] >= head &&
         &chunks_[unused_first_] < head + count) {
    ++unused_first_;
  }
  quota.chunks += count;
  quota.chunks_peak = std::max(quota.chunks_peak, quota.chunks);
  claimed_ += count;
  claimed_peak_ = std::max(claimed_peak_, claimed_);
  return head;
}

Arena::Chunk* Arena::find(std::size_t count, Placing placing, Among among) noexcept {
  std::size_t length = 0;
  for (std::size_t i = among == Among::unused ? unused_first_ : 0; i < chunks_.size(); ++i) {
    const bool fits = among == Among::unused ? chunks_[i].use == ChunkUse::unused : idle(chunks_[i]);
    const bool may_begin = placing == Placing::anywhere || i % count == 0;
    length = fits && (length > 0 || may_begin) ? length + 1 : 0;
    if (length == count) return &chunks_[i + 1 - count];
  }
  return nullptr;
}

// Gives up the side's own idle chunks, so that its quota has room for others.
void Arena::trim(Side side, std::size_t chunks_max) noexcept {
  for (Chunk& chunk : chunks_) {
    if (quotas_[index(side)].chunks <= chunks_max) return;
    if (chunk.side != side || chunk.use != ChunkUse::pieces || chunk.pieces_out > 0) continue;
    ++reclaims_;
    reset(chunk);
  }
}

void Arena::reset(Chunk& chunk) noexcept {
  if (chunk.linked()) unlink(chunk);
  if (chunk.use != ChunkUse::unused) {
    --claimed_;
    --quotas_[index(chunk.side)].chunks;
  }
  chunk.use = ChunkUse::unused;
  chunk.pieces_out = chunk.pieces_made = chunk.pinned = 0;
  chunk.free = nullptr;
  unused_first_ = std::min(unused_first_, static_cast<std::size_t>(&chunk - chunks_.data()));
}

void Arena::link(Chunk& chunk) noexcept {
  partial_[index(chunk.side)][chunk.size_class].push_front(chunk);
  open_[index(chunk.side)][chunk.size_class] = &chunk;
  chunk.watched = listener_ != nullptr;
}

void Arena::unlink(Chunk& chunk) noexcept {
  chunk.ListHook<>::unlink();
  Chunk* first = partial_[index(chunk.side)][chunk.size_class].front();
  open_[index(chunk.side)][chunk.size_class] = first != nullptr ? first : &nothing_;
  chunk.watched = true;
}

SideUsage Arena::usage(Side side) const noexcept {
  const Quota& quota = quotas_[index(side)];
  SideUsage usage{.bytes_peak = quota.chunks_peak * kChunkBytes,
                  .quota = quota.chunks_max * kChunkBytes,
                  .failures = quota.failures};
  for (const Chunk& chunk : chunks_) {
    if (chunk.side != side) continue;
    if (chunk.use == ChunkUse::pieces) {
      usage.bytes += chunk.pieces_out * class_bytes(chunk.size_class);
      usage.buffers += chunk.pieces_out - chunk.pinned;
    } else if (chunk.use == ChunkUse::run_head) {
      usage.bytes += chunk.pieces_out * kChunkBytes;
      usage.buffers += chunk.pinned == 0 ? 1 : 0;
    }
  }
  return usage;
}

void Arena::check_invariants() const {
  std::size_t claimed = 0;
  std::array<std::size_t, kSides> of_side{};
  for (const Chunk& chunk : chunks_) {
    BX_CHECK(chunk.use != ChunkUse::unused || &chunk >= chunks_.data() + unused_first_,
             "unused_first_bounds");
    if (chunk.use == ChunkUse::unused) continue;
    ++claimed;
    ++of_side[index(chunk.side)];
    if (chunk.use != ChunkUse::pieces) continue;
    std::size_t free = 0;
    for (const Piece* piece = chunk.free; piece != nullptr; piece = piece->next) {
      BX_CHECK(piece->chunk == &chunk && !stale(*piece), "free_pieces_of_this_generation");
      ++free;
    }
    BX_CHECK(chunk.pieces_made <= pieces_of(chunk) && chunk.pieces_out + free == chunk.pieces_made,
             "chunk_pieces_counted");
    BX_CHECK(chunk.pinned <= chunk.pieces_out, "pinned_pieces_counted");
    BX_CHECK(chunk.linked() || chunk.pieces_out == pieces_of(chunk), "open_chunks_listed");
    BX_CHECK(chunk.watched == (listener_ != nullptr || !chunk.linked()), "watched_chunks_marked");
  }
  BX_CHECK(claimed == claimed_, "chunks_counted");
  for (std::size_t side = 0; side < kSides; ++side) {
    BX_CHECK(of_side[side] == quotas_[side].chunks && of_side[side] <= quotas_[side].chunks_max,
             "quotas_kept");
  }
}

}  // namespace bx::memory
