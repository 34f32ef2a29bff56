// SPDX-License-Identifier: BSD-3-Clause
// A histogram of durations in buckets that double: bucket b counts [2^b, 2^(b+1)) ns, and bucket 0 also 0.
// Fixed in size, so that counting is a handful of instructions and no allocation; quantiles are right to a
// factor of two.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "libbx/base/time.h"

namespace bx {

class LogHistogram {
 public:
  static constexpr std::size_t kBuckets = 64;

  // `value` is not negative.
  void add(Duration value) noexcept {
    const auto ns = static_cast<std::uint64_t>(value.count());
    ++counts_[static_cast<std::size_t>(63 ^ std::countl_zero(ns | 1))];
    sum_ns_ += ns;
  }
  void add(const LogHistogram& other) noexcept {
    for (std::size_t b = 0; b < kBuckets; ++b) counts_[b] += other.counts_[b];
    sum_ns_ += other.sum_ns_;
  }
  [[nodiscard]] std::uint64_t count_in(std::size_t bucket) const noexcept { return counts_[bucket]; }
  // The first duration above the bucket, in ns; of the last bucket 2^64, which is why it is a double.
  [[nodiscard]] static constexpr double end_of(std::size_t bucket) noexcept {
    return 2.0 * static_cast<double>(std::uint64_t{1} << bucket);
  }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t count = 0;
    for (const std::uint64_t in_bucket : counts_) count += in_bucket;
    return count;
  }
  [[nodiscard]] std::uint64_t sum_ns() const noexcept { return sum_ns_; }
  // The end of the bucket that the quantile lies in (`of_thousand` 500: the median), in ns; 0 of nothing.
  [[nodiscard]] double quantile_ns(std::uint64_t of_thousand) const noexcept {
    const std::uint64_t rank = (count() * of_thousand + 999) / 1000;
    std::uint64_t seen = 0;
    for (std::size_t b = 0; b < kBuckets; ++b) {
      seen += counts_[b];
      if (counts_[b] > 0 && seen >= rank) return end_of(b);
    }
    return 0;
  }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t sum_ns_ = 0;
};

}  // namespace bx
