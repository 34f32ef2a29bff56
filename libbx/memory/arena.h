// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of one worker: one mapping, registered once, cut into chunks of 4 MiB. A chunk serves one
// size class (powers of two from 256 B to 2 MiB); once all its pieces are back, whoever needs a chunk may
// take it for any class. Larger buffers take a run of whole chunks. Allocation and release touch only side
// tables, never the memory itself, so that a NIC which is late cannot damage the free lists, and memory
// nobody wrote to costs nothing.
//
// Invariants: a piece belongs to at most one Buffer; a chunk with pieces out never changes its class.
#pragma once

#include <bx/buffer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/base/intrusive_list.h"
#include "libbx/base/result.h"
#include "libbx/fabric/device.h"

namespace bx::engine {

// Told when memory came back, so that what waits for some can be tried again.
class MemoryListener {
 public:
  virtual void on_memory_free() noexcept = 0;

 protected:
  ~MemoryListener() = default;
};

class Arena final : public BufferOwner {
 public:
  static constexpr std::size_t kChunkBytes = std::size_t{4} << 20U;
  static constexpr std::size_t kPieceMin = 256;
  static constexpr std::size_t kPieceMax = kChunkBytes / 2;

  // Maps and registers `bytes`, rounded up to whole chunks. Errors: exhausted (the mapping), device
  // (registration).
  static Result<std::unique_ptr<Arena>> create(fabric::Device& device, std::uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Size 0 gives an empty buffer. Errors: too_large (more than the arena), exhausted.
  Result<Buffer> allocate(std::size_t size) noexcept {
    Chunk& chunk = *open_[class_of(size)];
    if (Piece* piece = chunk.free) [[likely]]
      return take(chunk, *piece, size);
    return allocate_otherwise(size);
  }
  // The same for memory that the engine keeps while it lives: could_hold() does not count on it coming back.
  Result<Buffer> allocate_pinned(std::size_t size) noexcept;
  // Whether allocate(size) would succeed if every buffer that is not pinned came back.
  [[nodiscard]] bool could_hold(std::size_t size) const noexcept;
  // Null while nobody waits.
  void set_listener(MemoryListener* listener) noexcept { listener_ = listener; }
  void reclaim(Block& block) noexcept override;

  // Of pieces and runs that are out. Adds up: for reports, not for the way of a message.
  [[nodiscard]] std::uint64_t bytes_in_use() const noexcept;
  // Of chunks that were in use at once, whole, since nothing else could use the rest of them: what a smaller
  // arena would have failed at.
  [[nodiscard]] std::uint64_t bytes_in_use_peak() const noexcept { return claimed_peak_ * kChunkBytes; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return chunks_.size() * kChunkBytes; }
  void check_invariants() const;

 private:
  static constexpr std::size_t kClasses = 14;  // 256 B << 0 .. 256 B << 13
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kPiecesMax = kChunkBytes / kPieceMin;

  struct Chunk;
  // A piece of a chunk, or a whole run, in the place of its first chunk's first piece.
  struct Piece : Block {
    Chunk* chunk = nullptr;
    Piece* next = nullptr;  // free: the next free one of the chunk; out: itself, or kept_ for the less usual
  };
  enum class ChunkUse : std::uint8_t { unused, pieces, run_head, run_rest };
  struct Chunk : ListHook<> {
    ChunkUse use = ChunkUse::unused;
    std::uint8_t size_class = 0;
    std::uint32_t pieces_out = 0;  // or, in a run's head, the chunks of the run
    std::uint32_t pieces_made =
        0;                     // that were ever out since the chunk got its class; the rest have no entry
    std::uint32_t pinned = 0;  // of pieces_out
    Piece* free = nullptr;     // the one used last, which is in cache, first
  };

  Arena(std::byte* base, std::size_t chunks);
  // Of 0, and of what is longer than a piece, a class that never has a piece.
  static std::size_t class_of(std::size_t size) noexcept {
    constexpr std::size_t kShift = std::bit_width(kPieceMin) - 2;
    return 63 - static_cast<std::size_t>(std::countl_zero((size - 1) | (kPieceMin - 1))) - kShift;
  }
  static std::size_t class_bytes(std::size_t size_class) noexcept { return kPieceMin << size_class; }
  static std::size_t pieces_of(const Chunk& chunk) noexcept {
    return kChunkBytes / class_bytes(chunk.size_class);
  }
  static bool idle(const Chunk& chunk) noexcept {
    return chunk.use == ChunkUse::unused || (chunk.use == ChunkUse::pieces && chunk.pieces_out == 0);
  }
  Result<Buffer> take(Chunk& chunk, Piece& piece, std::size_t size) noexcept {
    chunk.free = piece.next;
    piece.next = &piece;
    ++chunk.pieces_out;
    return Result<Buffer>(tl::in_place, piece, piece.data, size);
  }
  Result<Buffer> allocate_otherwise(std::size_t size) noexcept;
  Result<Buffer> allocate_run(std::size_t size) noexcept;
  // A chunk of the class with a piece on its free list; null if there is none to be had.
  Chunk* chunk_with_piece(std::size_t size_class) noexcept;
  // The first of `count` chunks in a row that nothing is out of, now unused; null if there are none.
  Chunk* claim(std::size_t count) noexcept;
  Piece& make_piece(Chunk& chunk, std::size_t number, std::size_t capacity) noexcept;
  void reclaim_otherwise(Piece& piece) noexcept;
  void reset(Chunk& chunk) noexcept;
  void link(Chunk& chunk) noexcept;
  void unlink(Chunk& chunk) noexcept;

  std::byte* base_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::vector<Chunk> chunks_;
  Piece* pieces_;  // kPiecesMax a chunk; mapped, so those never out cost nothing
  // Per class the chunks that may have a piece left. The first of each, or `nothing_`, is in open_.
  std::array<IntrusiveList<Chunk>, kClasses> partial_;
  std::array<Chunk*, 64> open_;
  Chunk nothing_;
  Piece kept_;  // `next` of a run, and of a pinned piece
  MemoryListener* listener_ = nullptr;
  std::size_t claimed_ = 0;  // chunks that are not unused
  std::size_t claimed_peak_ = 0;
};

inline void Arena::reclaim(Block& block) noexcept {
  auto& piece = static_cast<Piece&>(block);
  if (piece.next != &piece) [[unlikely]]
    return reclaim_otherwise(piece);
  Chunk& chunk = *piece.chunk;
  piece.next = chunk.free;
  chunk.free = &piece;
  --chunk.pieces_out;
  if (!chunk.linked()) [[unlikely]]
    link(chunk);
  if (listener_ != nullptr) [[unlikely]]
    listener_->on_memory_free();
}

}  // namespace bx::engine
