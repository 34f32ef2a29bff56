// SPDX-License-Identifier: GPL-2.0-only
// Exact percentiles: every value is kept.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libbx/base/metrics.h"

namespace bx::harness {

class Samples {
 public:
  void add(std::uint64_t value) {
    values_.push_back(value);
    sorted_ = false;
  }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  // Nearest rank: the smallest value that at least `percent` % of the values do not exceed. Not of an empty
  // set.
  [[nodiscard]] std::uint64_t percentile(double percent) const;
  [[nodiscard]] double mean() const;
  // name.mean, .min, .p50, .p90, .p99 and .max in nanoseconds; nothing if there are no values.
  void report(std::string_view name, MetricSink& sink) const;

 private:
  mutable std::vector<std::uint64_t> values_;
  mutable bool sorted_ = false;
};

}  // namespace bx::harness
