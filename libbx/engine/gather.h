// SPDX-License-Identifier: BSD-3-Clause
// A message that lies in several Buffers, on its way. To whoever keeps and passes it on it is one Buffer, of
// the whole length and with no address; only who hands it to a NIC asks where its parts are. When that Buffer
// goes, so do the parts.
#pragma once

#include <bx/gather.h>

#include <array>
#include <cstdint>
#include <span>

#include "libbx/core/slot_table.h"
#include "libbx/fabric/types.h"

namespace bx::engine {

class GatheredMessage final : public Block {
 public:
  // Of at least two parts, none empty.
  GatheredMessage(BufferOwner& pool, Gather&& message) noexcept;

  // The elements of a SEND, `header` first. They stay where they are until the message goes.
  [[nodiscard]] std::span<const fabric::Sge> behind(const fabric::Sge& header) noexcept {
    elements_[0] = header;
    return std::span(elements_).first(count_ + 1);
  }
  // What lies in one piece from `offset` on, `length` bytes of it at most.
  [[nodiscard]] fabric::Sge piece(std::uint64_t offset, std::uint64_t length) const noexcept;

 private:
  friend class GatherPool;
  std::array<Buffer, Gather::kPartsMax> parts_;
  std::array<fabric::Sge, Gather::kPartsMax + 1> elements_{};  // the first is for a header
  std::size_t count_ = 0;
  core::SlotHandle handle_ = 0;
};

// Null if the payload lies in one piece.
inline GatheredMessage* gathered(const Buffer& payload) noexcept {
  Block* const block = payload.block();
  return block != nullptr && block->gathered ? static_cast<GatheredMessage*>(block) : nullptr;
}

// What of the payload lies in one piece from `offset` on, `length` bytes at most; those are there.
fabric::Sge piece_of(const Buffer& payload, std::uint64_t offset, std::uint64_t length) noexcept;

class GatherPool final : public BufferOwner {
 public:
  explicit GatherPool(std::uint32_t messages_max) : messages_(messages_max) {}
  [[nodiscard]] bool full() const noexcept { return messages_.full(); }
  // Ask full() first; at least two parts.
  [[nodiscard]] Buffer make(Gather&& message) noexcept;
  void reclaim(Block& block) noexcept override {
    messages_.erase(static_cast<GatheredMessage&>(block).handle_);
  }

 private:
  core::SlotTable<GatheredMessage> messages_;
};

}  // namespace bx::engine
