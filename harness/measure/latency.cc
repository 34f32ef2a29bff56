// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/latency.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "libbx/base/check.h"

namespace bx::harness {

std::uint64_t Samples::percentile(double percent) const {
  BX_CHECK(!values_.empty() && percent >= 0 && percent <= 100, "a percentile of what?");
  if (!sorted_) {
    std::ranges::sort(values_);
    sorted_ = true;
  }
  const double rank = std::ceil(percent / 100.0 * static_cast<double>(values_.size()));
  return values_[rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1];
}

double Samples::mean() const {
  BX_CHECK(!values_.empty(), "the mean of nothing");
  __extension__ using Wide = unsigned __int128;
  Wide sum = 0;
  for (const std::uint64_t value : values_) sum += value;
  return static_cast<double>(sum) / static_cast<double>(values_.size());
}

void Samples::report(std::string_view name, MetricSink& sink) const {
  if (values_.empty()) return;
  const auto tell = [&](std::string_view suffix, double value) {
    sink.metric(std::string(name) + "." + std::string(suffix), value, "ns");
  };
  tell("mean", mean());
  tell("min", static_cast<double>(percentile(0)));
  tell("p50", static_cast<double>(percentile(50)));
  tell("p90", static_cast<double>(percentile(90)));
  tell("p99", static_cast<double>(percentile(99)));
  tell("max", static_cast<double>(percentile(100)));
}

}  // namespace bx::harness
