// SPDX-License-Identifier: GPL-2.0-only
// How far two results of a scenario may be apart, as its [[compare]] tables say; `bx compare` judges by it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/diagnostics.h"
#include "harness/scenario/document.h"

namespace bx::harness {

// Values agree that are within a share of the larger one, or less than `or_by` apart.
struct CompareRule {
  enum class Over : std::uint8_t {
    each,  // each seed of one result with the same seed of the other
    mean,  // the means over all seeds: for what chance decides in both, such as which packets are lost
  };
  std::string metric{};
  double within = 0.1;
  double or_by = 0;          // in the metric's unit
  std::string or_by_unit{};  // "ns", "bytes", "bps" as written, or empty for a plain number
  bool judged = true;        // false: shown only
  Over over = Over::each;
  std::vector<std::string> variants{};  // empty: all

  [[nodiscard]] bool applies_to(std::string_view variant) const;
};
std::string_view to_string(CompareRule::Over over) noexcept;

// Reads one [[compare]] table; mistakes become diagnostics and give nothing.
std::optional<CompareRule> read_compare_rule(const Value& table,
                                             const std::vector<std::string>& variant_names,
                                             std::string_view source, Diagnostics& diagnostics);

}  // namespace bx::harness
