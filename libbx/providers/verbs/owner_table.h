// SPDX-License-Identifier: BSD-3-Clause
// From the wr_id of a completion back to whose it is. libibverbs returns nothing but that word for certain
// (of a failed request not even the opcode), so it carries a tag of ours: sends name their queue pair,
// receives their shared receive queue; the user's WrId waits with them.
//
//   63       62..56   55..32     31..0
//   receive  round    index      send: number of the request; receive: its place in the queue
//
// `round` counts the owners of an index, so that a completion of one that is gone meets nobody.
#pragma once

#include <cstdint>
#include <vector>

namespace bx::verbs {

struct Tag {
  std::uint32_t number = 0;
  std::uint32_t index = 0;
  std::uint8_t round = 0;
  bool receive = false;

  [[nodiscard]] std::uint64_t pack() const noexcept {
    return (receive ? std::uint64_t{1} << 63U : 0) | std::uint64_t{round} << 56U |
           std::uint64_t{index} << 32U | number;
  }
  static Tag unpack(std::uint64_t word) noexcept {
    return {.number = static_cast<std::uint32_t>(word),
            .index = static_cast<std::uint32_t>(word >> 32U) & 0xffffffU,
            .round = static_cast<std::uint8_t>(word >> 56U & 0x7fU),
            .receive = word >> 63U != 0};
  }
  friend bool operator==(const Tag&, const Tag&) = default;
};

// Owners by index. Grows when an owner is added, never on the data path.
class OwnerTable {
 public:
  static constexpr std::uint32_t kIndexMax = (1U << 24U) - 1;

  // The tag of a new owner, with number 0.
  Tag add(void* owner, bool receive);
  void remove(const Tag& tag) noexcept;
  // Null if it is gone.
  [[nodiscard]] void* find(const Tag& tag) const noexcept {
    const bool known = tag.index < slots_.size() && slots_[tag.index].round == tag.round;
    return known ? slots_[tag.index].owner : nullptr;
  }

 private:
  struct Slot {
    void* owner = nullptr;
    std::uint8_t round = 0;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace bx::verbs
