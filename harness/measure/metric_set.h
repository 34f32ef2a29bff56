// SPDX-License-Identifier: GPL-2.0-only
// Named numbers with units, in the order in which they were first told.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/metrics.h"

namespace bx::harness {

struct Metric {
  std::string name;
  double value = 0;
  std::string unit;
  bool level = false;  // what is so at the moment
};

class MetricSet final : public MetricSink {
 public:
  // Adds to a metric that is there already: the counters of many workers become one sum. Names that end in
  // "_max" keep the largest instead.
  void metric(std::string_view name, double value, std::string_view unit) override;
  void level(std::string_view name, double value, std::string_view unit) override;
  // Sets, whatever was there.
  void set(std::string_view name, double value, std::string_view unit);

  [[nodiscard]] const Metric* find(std::string_view name) const;
  [[nodiscard]] double value_or(std::string_view name, double otherwise) const;
  [[nodiscard]] const std::vector<Metric>& all() const noexcept { return metrics_; }
  [[nodiscard]] std::vector<std::string> names() const;

  // What was counted since `baseline`, which was taken earlier from the same sources. Levels, "_max"
  // and ratios are no sums over time and stay as they are.
  [[nodiscard]] MetricSet since(const MetricSet& baseline) const;

 private:
  std::vector<Metric> metrics_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace bx::harness
