// SPDX-License-Identifier: GPL-2.0-only
#include "harness/measure/metric_set.h"

#include <algorithm>

namespace bx::harness {
namespace {

bool is_largest(const Metric& metric) {
  return metric.name.ends_with("_max") || metric.unit == "ratio";
}

}  // namespace

void MetricSet::metric(std::string_view name, double value, std::string_view unit) {
  const auto known = index_.find(name);
  if (known == index_.end()) return set(name, value, unit);
  Metric& metric = metrics_[known->second];
  metric.value = is_largest(metric) ? std::max(metric.value, value) : metric.value + value;
}

void MetricSet::level(std::string_view name, double value, std::string_view unit) {
  metric(name, value, unit);
  metrics_[index_.find(name)->second].level = true;
}

void MetricSet::set(std::string_view name, double value, std::string_view unit) {
  const auto [position, added] = index_.try_emplace(std::string(name), metrics_.size());
  if (added) {
    metrics_.push_back({std::string(name), value, std::string(unit)});
  } else {
    metrics_[position->second] = {std::string(name), value, std::string(unit)};
  }
}

const Metric* MetricSet::find(std::string_view name) const {
  const auto known = index_.find(name);
  return known == index_.end() ? nullptr : &metrics_[known->second];
}

double MetricSet::value_or(std::string_view name, double otherwise) const {
  const Metric* metric = find(name);
  return metric == nullptr ? otherwise : metric->value;
}

std::vector<std::string> MetricSet::names() const {
  std::vector<std::string> names;
  for (const Metric& metric : metrics_) names.push_back(metric.name);
  return names;
}

MetricSet MetricSet::since(const MetricSet& baseline) const {
  MetricSet result = *this;
  for (Metric& metric : result.metrics_) {
    if (!metric.level && !is_largest(metric)) metric.value -= baseline.value_or(metric.name, 0);
  }
  return result;
}

}  // namespace bx::harness
