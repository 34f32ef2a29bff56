// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/series.h"

#include <fmt/format.h>

#include <iterator>

namespace bx::harness {

void Series::add(const SeriesRow& row) {
  if (rows_.size() == kRowsMax) {
    // The rows with odd numbers stay: the last one is among them, so the series keeps reaching up to now.
    for (std::size_t i = 0; 2 * i + 1 < rows_.size(); ++i) rows_[i] = rows_[2 * i + 1];
    rows_.resize(rows_.size() / 2);
    interval_ns_ *= 2;
  }
  rows_.push_back(row);
}

std::string Series::csv() const {
  std::string text = fmt::format("{}\n", fmt::join(SeriesRow::kColumns, ","));
  for (const SeriesRow& row : rows_)
    fmt::format_to(std::back_inserter(text), "{}\n", fmt::join(row.values, ","));
  return text;
}

}  // namespace bx::harness
