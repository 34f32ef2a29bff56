// SPDX-License-Identifier: GPL-2.0-only
#include "harness/base/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace bx::harness {

void Diagnostics::error(std::string_view source, Place place, std::string message) {
  auto known = std::ranges::find(sources_, source);
  if (known == sources_.end()) known = sources_.insert(sources_.end(), std::string(source));
  const auto index = static_cast<std::size_t>(known - sources_.begin());
  // The same mistake seen through two variants is one mistake.
  for (const Entry& entry : errors_) {
    if (entry.source == index && entry.place == place && entry.message == message) return;
  }
  errors_.push_back({index, place, std::move(message)});
}

std::string Diagnostics::text() const {
  std::vector<Entry> sorted = errors_;
  std::ranges::stable_sort(sorted, [](const Entry& a, const Entry& b) {
    return std::tie(a.source, a.place) < std::tie(b.source, b.place);
  });
  std::string out;
  for (std::size_t i = 0; i < sorted.size() && i < kShownMax; ++i) {
    const Entry& entry = sorted[i];
    out += sources_[entry.source];
    if (entry.place.line != 0) out += fmt::format(":{}:{}", entry.place.line, entry.place.column);
    out += fmt::format(": error: {}\n", entry.message);
  }
  if (sorted.size() > kShownMax) out += fmt::format("and {} more errors\n", sorted.size() - kShownMax);
  return out;
}

}  // namespace bx::harness
