// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/providers/verbs/owner_table.h"

#include "libbx/base/check.h"

namespace bx::verbs {

Tag OwnerTable::add(void* owner, bool receive) {
  if (free_.empty()) {
    BX_CHECK(slots_.size() < kIndexMax, "more queue pairs than a device can number");
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
    free_.reserve(slots_.capacity());  // remove() then never allocates
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index].owner = owner;
  return {.index = index, .round = slots_[index].round, .receive = receive};
}

void OwnerTable::remove(const Tag& tag) noexcept {
  Slot& slot = slots_[tag.index];
  slot.owner = nullptr;
  slot.round = (slot.round + 1U) & 0x7fU;
  free_.push_back(tag.index);
}

}  // namespace bx::verbs
