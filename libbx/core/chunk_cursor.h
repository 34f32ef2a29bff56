// SPDX-License-Identifier: BSD-3-Clause
// Where a rendezvous transfer stands: which part is to be asked for next, how much is outstanding, how much
// is there. Parts may complete in any order; they are counted, not tracked, because each is answered exactly
// once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libbx/base/check.h"

namespace bx::core {

class ChunkCursor {
 public:
  ChunkCursor() = default;
  ChunkCursor(std::uint64_t length, std::uint64_t chunk) noexcept : length_(length), chunk_(chunk) {
    BX_CHECK(chunk > 0, "a transfer is cut into parts of at least one byte");
  }

  struct Chunk {
    std::uint64_t offset;
    std::uint64_t length;
  };

  [[nodiscard]] bool all_issued() const noexcept { return issued_ == length_ || stopped_; }
  [[nodiscard]] std::uint64_t next_length() const noexcept { return std::min(chunk_, length_ - issued_); }
  Chunk issue() noexcept {
    BX_CHECK(!all_issued(), "a transfer was asked for more than its length");
    const Chunk chunk{issued_, next_length()};
    issued_ += chunk.length;
    return chunk;
  }
  void on_done(std::uint64_t length) noexcept {
    BX_CHECK(length <= issued_ - done_, "a transfer completed more than was asked for");
    done_ += length;
  }
  // Nothing more will be asked for; what is outstanding still completes.
  void stop() noexcept { stopped_ = true; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return issued_ - done_; }
  // Nothing outstanding and nothing left to ask for.
  [[nodiscard]] bool settled() const noexcept { return all_issued() && outstanding() == 0; }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }

 private:
  std::uint64_t length_ = 0;
  std::uint64_t chunk_ = 1;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
  bool stopped_ = false;
};

}  // namespace bx::core
