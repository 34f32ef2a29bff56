// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of one worker: one mapping, registered once, cut into chunks of 4 MiB. A chunk serves one
// size class of one side (size_class.h); once all its pieces are back, whoever needs a chunk may take it for
// any class of any side. Larger buffers are runs of whole chunks. Allocation and release touch only side
// tables, never the memory itself, so that a NIC which is late cannot damage the free lists, and memory
// nobody wrote to costs nothing.
//
// Each side has a quota: the chunks it may have at once. What a quota leaves of the arena is the other side's
// for certain, so that neither starves the other.
//
// A chunk that changes its class begins a new generation, whose pieces have other entries in the side table
// than those of the generation before. So a Block of that one stays recognisable: giving it back once more
// breaks, instead of freeing what is somebody else's now.
//
// Invariants: a piece belongs to at most one Buffer; a chunk with pieces out never changes its class;
// quotas_kept.
#pragma once

#include <bx/buffer.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "libbx/base/check.h"
#include "libbx/base/intrusive_list.h"
#include "libbx/base/result.h"
#include "libbx/fabric/device.h"
#include "libbx/memory/page_mapping.h"
#include "libbx/memory/size_class.h"

namespace bx::memory {

using engine::Block;

// Told when memory came back, so that what waits for some can be tried again.
class MemoryListener {
 public:
  virtual void on_memory_free() noexcept = 0;

 protected:
  ~MemoryListener() = default;
};

enum class Side : std::uint8_t {
  send,     // the application's buffers and what it sends from them
  receive,  // the library's: receive slots, lane headers, incoming payloads
};
inline constexpr std::size_t kSides = 2;

struct ArenaConfig {
  std::uint64_t bytes = 0;  // rounded up to whole chunks
  std::array<std::uint64_t, kSides>
      quota{};  // bytes by Side, rounded down to whole chunks; 0: the whole arena
  PageWish pages{};
};

// Of one side.
struct SideUsage {
  std::uint64_t bytes = 0;       // of pieces and runs that are out
  std::uint64_t buffers = 0;     // that are out, without those the engine pinned
  std::uint64_t bytes_peak = 0;  // of chunks taken at once, whole: what a smaller quota would have failed at
  std::uint64_t quota = 0;       // bytes
  std::uint64_t failures = 0;    // allocations that found nothing
};

class Arena final : public engine::BufferOwner {
 public:
  // Maps and registers. Errors: exhausted (the mapping), device (registration).
  static Result<std::unique_ptr<Arena>> create(fabric::Device& device, SystemMemory& system,
                                               const ArenaConfig& config);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Size 0 gives an empty buffer. Errors: too_large (more than the side's quota), exhausted.
  Result<Buffer> allocate(std::size_t size, Side side = Side::send) noexcept {
    Chunk& chunk = *open_[index(side)][class_of(size)];
    if (Piece* piece = chunk.free) [[likely]]
      return take(chunk, *piece, size);
    return allocate_otherwise(size, side);
  }
  // The same for memory that the engine keeps while it lives: could_hold() does not count on it coming back.
  Result<Buffer> allocate_pinned(std::size_t size, Side side) noexcept;
  // Whether allocate(size) would succeed if every buffer that is not pinned came back.
  [[nodiscard]] bool could_hold(std::size_t size, Side side = Side::send) const noexcept;
  // Null while nobody waits.
  void set_listener(MemoryListener* listener) noexcept;
  void reclaim(Block& block) noexcept override;

  // Adds up: for reports, not for the way of a message.
  [[nodiscard]] SideUsage usage(Side side) const noexcept;
  [[nodiscard]] std::uint64_t bytes_in_use() const noexcept {
    return usage(Side::send).bytes + usage(Side::receive).bytes;
  }
  // Of chunks taken at once by both sides, whole.
  [[nodiscard]] std::uint64_t bytes_in_use_peak() const noexcept { return claimed_peak_ * kChunkBytes; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return chunks_.size() * kChunkBytes; }
  // Idle chunks that were taken from their class.
  [[nodiscard]] std::uint64_t reclaims() const noexcept { return reclaims_; }
  [[nodiscard]] PageKind page_kind() const noexcept { return mapping_.kind(); }
  // What to set for larger pages; null if they are as wished for.
  [[nodiscard]] const char* remedy() const noexcept { return mapping_.remedy(); }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return mapping_.bytes(); }
  void check_invariants() const;

 private:
  static constexpr std::uint32_t kEntries = 2 * kPiecesMax;  // of a chunk: so that two generations fit

  struct Chunk;
  // A piece of a chunk, or a whole run.
  struct Piece : Block {
    Chunk* chunk = nullptr;
    Piece* next = nullptr;  // free: the next free one of the chunk; out: itself, or kept_ for the less usual
  };
  enum class ChunkUse : std::uint8_t { unused, pieces, run_head, run_rest };
  struct Chunk : ListHook<> {
    ChunkUse use = ChunkUse::unused;
    Side side = Side::send;
    std::uint8_t size_class = 0;
    bool watched = false;           // a piece that comes back is news: the chunk was full, or somebody waits
    std::uint32_t pieces_out = 0;   // or, in a run's head, the chunks of the run
    std::uint32_t pieces_made = 0;  // that were ever out in this generation; the rest have no entry
    std::uint32_t pinned = 0;       // of pieces_out
    std::uint32_t entry_first = 0;  // of this generation, in the chunk's part of the side table
    std::uint32_t entry_end = 0;
    Piece* free = nullptr;  // the one used last, which is in cache, first
  };
  struct Quota {
    std::size_t chunks_max;
    std::size_t chunks = 0;
    std::size_t chunks_peak = 0;
    std::uint64_t failures = 0;
  };

  Arena(SystemMemory& system, PageMapping mapping, const ArenaConfig& config);
  static std::size_t index(Side side) noexcept { return static_cast<std::size_t>(side); }
  static std::uint32_t pieces_of(const Chunk& chunk) noexcept {
    return static_cast<std::uint32_t>(kChunkBytes / class_bytes(chunk.size_class));
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
  BX_COLD Result<Buffer> allocate_otherwise(std::size_t size, Side side) noexcept;
  Result<Buffer> allocate_run(std::size_t size, Side side) noexcept;
  // A chunk of the class with a piece on its free list; null if there is none to be had.
  Chunk* chunk_with_piece(std::size_t size_class, Side side) noexcept;
  enum class Placing : std::uint8_t { anywhere, aligned };  // aligned: the first is a multiple of their count
  // The first of `count` chunks in a row, now unused and counted to the side; null if there are none.
  Chunk* claim(std::size_t count, Side side, Placing placing) noexcept;
  enum class Among : std::uint8_t { unused, idle };
  Chunk* find(std::size_t count, Placing placing, Among among) noexcept;
  void trim(Side side, std::size_t chunks_max) noexcept;
  void begin_generation(Chunk& chunk, std::uint32_t entries) noexcept;
  Piece& make_piece(Chunk& chunk, std::size_t number, std::size_t capacity) noexcept;
  [[nodiscard]] bool stale(const Piece& piece) const noexcept;
  BX_COLD void reclaim_otherwise(Piece& piece) noexcept;
  BX_COLD void reclaim_watched(Chunk& chunk) noexcept;
  void reset(Chunk& chunk) noexcept;
  void link(Chunk& chunk) noexcept;
  void unlink(Chunk& chunk) noexcept;

  SystemMemory& system_;
  PageMapping mapping_;
  std::byte* base_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::vector<Chunk> chunks_;
  std::span<std::byte> entries_;
  Piece* pieces_;  // kEntries a chunk; mapped, so those never out cost nothing
  // Per side and class the chunks that may have a piece left. The first of each, or `nothing_`, is in open_.
  std::array<std::array<IntrusiveList<Chunk>, kPieceClasses>, kSides> partial_;
  std::array<std::array<Chunk*, kOpenClasses>, kSides> open_;
  Chunk nothing_;
  Piece kept_;  // `next` of a run, and of a pinned piece
  MemoryListener* listener_ = nullptr;
  std::array<Quota, kSides> quotas_;
  std::size_t claimed_ = 0;  // chunks that are not unused
  std::size_t claimed_peak_ = 0;
  std::size_t unused_first_ = 0;  // none below it is unused
  std::uint64_t reclaims_ = 0;
};

inline void Arena::reclaim(Block& block) noexcept {
  auto& piece = static_cast<Piece&>(block);
  if (piece.next != &piece) [[unlikely]]
    return reclaim_otherwise(piece);
  Chunk& chunk = *piece.chunk;
  piece.next = chunk.free;
  chunk.free = &piece;
  --chunk.pieces_out;
  if (chunk.watched) [[unlikely]]
    reclaim_watched(chunk);
}

}  // namespace bx::memory
