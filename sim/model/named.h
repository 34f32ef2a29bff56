// SPDX-License-Identifier: GPL-2.0-only
// Looks something up by its name in a table: profiles of switches, NICs and congestion control.
#pragma once

#include <algorithm>
#include <memory>
#include <ranges>
#include <string_view>

namespace bx::sim {

// The element of `table` whose member `name_of` is `name`; null if there is none.
template <std::ranges::contiguous_range Table, class NameOf>
constexpr const std::ranges::range_value_t<Table>* find_named(const Table& table, std::string_view name,
                                                              NameOf name_of) noexcept {
  const auto found = std::ranges::find(table, name, name_of);
  return found == std::ranges::end(table) ? nullptr : std::to_address(found);
}

}  // namespace bx::sim
