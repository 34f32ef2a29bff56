// SPDX-License-Identifier: GPL-2.0-only
// Looks at a run between its slices: the rows of its time series, its progress for whoever watches, and now
// and then the invariants of every worker.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "harness/measure/series.h"
#include "harness/run/traffic.h"
#include "harness/run/variant_run.h"

namespace bx::harness {

class Sampler {
 public:
  // Both outlive it.
  Sampler(const Traffic& traffic, RunObserver& observer) : traffic_(traffic), observer_(observer) {}

  // The measured part begins, and is expected to take so long. `interval_ns` 0 chooses one.
  void start(std::uint64_t interval_ns, std::uint64_t expected_ns);
  void stop() noexcept { sampling_ = false; }
  [[nodiscard]] bool sampling() const noexcept { return sampling_; }
  // Of the series, which may grow.
  [[nodiscard]] std::uint64_t interval_ns() const noexcept { return series_.interval_ns(); }
  void look(std::string_view phase);
  [[nodiscard]] Series take_series() { return std::move(series_); }

 private:
  [[nodiscard]] double fraction(std::uint64_t bytes) const;

  const Traffic& traffic_;
  RunObserver& observer_;
  Series series_;
  bool sampling_ = false;
  std::uint64_t expected_ns_ = 0;
  std::uint64_t started_ns_ = 0;
  std::uint64_t sampled_ns_ = 0;  // when
  std::uint64_t bytes_before_ = 0;
  std::uint64_t bytes_sampled_ = 0;
  std::uint64_t looks_ = 0;
};

}  // namespace bx::harness
