// SPDX-License-Identifier: BSD-3-Clause
// Which sizes registered memory is given out in. Up to half a chunk: powers of two, many pieces to a chunk.
// From one chunk to 32 MiB: powers of two, each a run of whole chunks. Beyond: as many chunks as it takes.
#pragma once

#include <bit>
#include <cstddef>

namespace bx::memory {

inline constexpr std::size_t kChunkBytes = std::size_t{4} << 20U;
inline constexpr std::size_t kPieceMin = 64;
inline constexpr std::size_t kPieceMax = kChunkBytes / 2;
inline constexpr std::size_t kPieceClasses = 16;                     // kPieceMin << 0 .. kPieceMin << 15
inline constexpr std::size_t kRunClassMax = std::size_t{32} << 20U;  // longer runs are of no class
inline constexpr std::size_t kPiecesMax = kChunkBytes / kPieceMin;   // of a chunk
inline constexpr std::size_t kOpenClasses = 64;                      // values of class_of()
static_assert(kPieceMin << (kPieceClasses - 1) == kPieceMax);

// Of 0, and of what is longer than a piece, a class that never has a piece (kPieceClasses or above).
constexpr std::size_t class_of(std::size_t size) noexcept {
  constexpr std::size_t kShift = std::bit_width(kPieceMin) - 2;
  return 63 - static_cast<std::size_t>(std::countl_zero((size - 1) | (kPieceMin - 1))) - kShift;
}
constexpr std::size_t class_bytes(std::size_t size_class) noexcept {
  return kPieceMin << size_class;
}

constexpr std::size_t chunks_for(std::size_t bytes) noexcept {
  return bytes / kChunkBytes + (bytes % kChunkBytes != 0 ? 1 : 0);
}
// Chunks of the class of a run; those that hold it if it is of none.
constexpr std::size_t run_class_chunks(std::size_t bytes) noexcept {
  return bytes <= kRunClassMax ? std::bit_ceil(chunks_for(bytes)) : chunks_for(bytes);
}

}  // namespace bx::memory
