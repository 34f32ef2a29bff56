// SPDX-License-Identifier: BSD-3-Clause
// Registered memory of one worker: one mapping, registered once, cut into chunks of 4 MiB. A chunk serves one
// size class (powers of two from 256 B to 2 MiB) until all its pieces are back, then any class; larger
// buffers take a run of whole chunks. Allocation and release touch only side tables, never the memory itself,
// so that a NIC which is late cannot damage the free lists, and memory nobody wrote to costs nothing.
//
// Invariants: a piece belongs to at most one Buffer; a chunk with pieces out never changes its class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libbx/base/result.h"
#include "libbx/engine/buffer_owner.h"
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
  Result<Buffer> allocate(std::size_t size) noexcept;
  // The same for memory that the engine keeps while it lives: could_hold() does not count on it coming back.
  Result<Buffer> allocate_pinned(std::size_t size) noexcept;
  // Whether allocate(size) would succeed if every buffer that is not pinned came back.
  [[nodiscard]] bool could_hold(std::size_t size) const noexcept;
  void set_listener(MemoryListener* listener) noexcept { listener_ = listener; }
  void reclaim(std::byte* data, std::size_t capacity, std::uint32_t tag) noexcept override;

  [[nodiscard]] std::uint64_t bytes_in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::uint64_t bytes_in_use_peak() const noexcept { return peak_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return chunks_.size() * kChunkBytes; }
  void check_invariants() const;

 private:
  static constexpr std::size_t kClasses = 14;  // 256 B << 0 .. 256 B << 13
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kPiecesMax = kChunkBytes / kPieceMin;
  static constexpr std::uint32_t kPinnedTag = 1U << 31U;  // in a buffer's tag, beside its chunk

  enum class ChunkUse : std::uint8_t { unused, pieces, run_head, run_rest };
  struct Chunk {
    ChunkUse use = ChunkUse::unused;
    std::uint8_t size_class = 0;
    std::uint32_t pieces_out = 0;  // or, in a run's head, the chunks of the run
    std::uint32_t pinned = 0;      // of pieces_out
    std::uint32_t scan_from = 0;   // no free piece below this word of the bitmap
    std::uint32_t next = kNone;    // on the list of its class's chunks with a free piece
    std::uint32_t prev = kNone;
    bool listed = false;
  };

  Arena(std::byte* base, std::size_t chunks);
  [[nodiscard]] std::uint64_t* bitmap(std::uint32_t chunk) noexcept {
    return bitmaps_ + chunk * (kPiecesMax / 64);
  }
  std::uint32_t find_run(std::size_t count) const noexcept;
  Result<Buffer> allocate_piece(std::size_t size, std::uint32_t pin) noexcept;
  Result<Buffer> allocate_run(std::size_t size, std::uint32_t pin) noexcept;
  void reclaim_piece(std::uint32_t chunk, const std::byte* data) noexcept;
  void link(std::uint32_t chunk) noexcept;
  void unlink(std::uint32_t chunk) noexcept;
  Buffer lease(std::byte* data, std::size_t size, std::size_t capacity, std::uint32_t tag) noexcept;

  std::byte* base_;
  std::unique_ptr<fabric::MemoryRegion> region_;
  std::vector<Chunk> chunks_;
  std::uint64_t* bitmaps_;  // one bit a piece, 1 is taken; mapped, so untouched chunks cost nothing
  std::array<std::uint32_t, kClasses> open_chunks_;
  MemoryListener* listener_ = nullptr;
  std::uint64_t in_use_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace bx::engine
