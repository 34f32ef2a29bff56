// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/oracle.h"

#include <fmt/format.h>

#include <algorithm>

namespace bx::harness {

void Oracle::breach(std::string_view promise, std::string detail) {
  auto tally = std::ranges::find(tallies_, promise, &Tally::promise);
  if (tally == tallies_.end()) tally = tallies_.insert(tallies_.end(), Tally{std::string(promise), {}, 0});
  ++tally->count;
  if (tally->details.size() < kDetailsMax) tally->details.push_back(std::move(detail));
}

std::vector<Breach> Oracle::breaches() const {
  std::vector<Breach> all;
  for (const Tally& tally : tallies_) {
    for (const std::string& detail : tally.details) all.push_back({tally.promise, detail});
    if (tally.count > tally.details.size()) {
      all.push_back({tally.promise, fmt::format("and {} more", tally.count - tally.details.size())});
    }
  }
  return all;
}

}  // namespace bx::harness
