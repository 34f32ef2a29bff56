// SPDX-License-Identifier: GPL-2.0-only
// What a person sees after a run: the variants side by side, then what was expected and what was breached.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/run/variant_result.h"

namespace bx::harness {

struct TableStyle {
  bool utf8 = false;
  std::size_t width = 100;  // columns; the table is broken into blocks of variants that fit
};

// Columns are variants, the first is the baseline and others show their ratio to it.
std::string render_table(std::span<const VariantResult> results, const TableStyle& style);

// A line for each expectation, each that was skipped and each breach.
std::string render_verdicts(std::span<const VariantResult> results, const TableStyle& style);

// Rows of cells as aligned columns, the first left and the others right.
std::string align(const std::vector<std::vector<std::string>>& rows);

}  // namespace bx::harness
