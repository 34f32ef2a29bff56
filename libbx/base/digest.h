// SPDX-License-Identifier: BSD-3-Clause
// A running 64-bit digest of a sequence of words: two runs are the same run if their digests are equal.
// Not for secrets. Multiply-and-fold as in wyhash, one 64x64->128 multiplication a word.
#pragma once

#include <cstdint>

namespace bx {

class Digest {
 public:
  void add(std::uint64_t word) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(state_ ^ word) * 0x9fb21c651e98df25ULL;
    // The rotation keeps the order significant even where the fold alone would cancel.
    const std::uint64_t folded =
        static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
    state_ = ((folded << 23U) | (folded >> 41U)) + 0xa0761d6478bd642fULL + word;
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }
  friend bool operator==(const Digest&, const Digest&) = default;

 private:
  std::uint64_t state_ = 0x2d358dccaa6c78a5ULL;
};

}  // namespace bx
