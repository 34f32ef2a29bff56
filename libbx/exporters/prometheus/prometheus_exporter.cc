// SPDX-License-Identifier: BSD-3-Clause
#include "libbx/exporters/prometheus/prometheus_exporter.h"

#include <algorithm>
#include <utility>

namespace bx::exporters {
namespace {

constexpr double kNanosecond = 1e-9;
// Buckets shown: from 1 us to 34 s; what is shorter counts in the first, what is longer in +Inf only.
constexpr std::size_t kFirstBucket = 9;
constexpr std::size_t kLastBucket = 34;

// Sorts what a worker tells into families, which the text format wants together.
class Sorter final : public LabelledMetricSink {
 public:
  void metric(const LabelledMetric& metric, double value) override {
    const bool counter = metric.kind == MetricKind::counter;
    prometheus::ClientMetric& sample =
        add(metric, counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge);
    const double scaled = metric.unit == "ns" ? value * kNanosecond : value;
    (counter ? sample.counter.value : sample.gauge.value) = scaled;
  }
  // "le" includes its bound and our buckets do not: a value of exactly a power of two counts one bucket late.
  void histogram(const LabelledMetric& metric, const LogHistogram& values) override {
    LabelledMetric named = metric;
    named.kind = MetricKind::gauge;  // a histogram's name gets no "_total"
    prometheus::ClientMetric::Histogram& histogram = add(named, prometheus::MetricType::Histogram).histogram;
    histogram.sample_count = values.count();
    histogram.sample_sum = static_cast<double>(values.sum_ns()) * kNanosecond;
    std::uint64_t below = 0;
    for (std::size_t b = 0; b <= kLastBucket; ++b) {
      below += values.count_in(b);
      if (b >= kFirstBucket) histogram.bucket.push_back({below, LogHistogram::end_of(b) * kNanosecond});
    }
  }
  std::map<std::string, prometheus::MetricFamily> families;
  std::string worker;

 private:
  prometheus::ClientMetric& add(const LabelledMetric& metric, prometheus::MetricType type) {
    const std::string name = prometheus_name(metric);
    prometheus::MetricFamily& family = families[name];
    family.name = name;
    family.help = std::string(metric.name) + " of ByteExpress, in " + std::string(metric.unit);
    family.type = type;
    prometheus::ClientMetric& sample = family.metric.emplace_back();
    for (const MetricLabel& label : metric.labels) {
      sample.label.push_back({std::string(label.name), std::string(label.value)});
      if (label.name == "worker") worker = label.value;
    }
    return sample;
  }
};

}  // namespace

std::string prometheus_name(const LabelledMetric& metric) {
  std::string name = "bx_" + std::string(metric.name);
  std::replace(name.begin(), name.end(), '.', '_');
  if (metric.unit == "ns") name += "_seconds";
  if (metric.unit == "bytes" && name.find("bytes") == std::string::npos) name += "_bytes";
  if (metric.kind == MetricKind::counter) name += "_total";
  return name;
}

void PrometheusExporter::update(const Worker& worker) {
  Sorter sorter;
  worker.report(sorter);
  const std::lock_guard lock(mutex_);
  workers_[sorter.worker] = std::move(sorter.families);
}

void PrometheusExporter::forget(std::string_view worker) {
  const std::lock_guard lock(mutex_);
  if (const auto known = workers_.find(worker); known != workers_.end()) workers_.erase(known);
}

std::vector<prometheus::MetricFamily> PrometheusExporter::Collect() const {
  Families all;
  const std::lock_guard lock(mutex_);
  for (const auto& [worker, families] : workers_) {
    for (const auto& [name, family] : families) {
      const auto [position, added] = all.try_emplace(name, family);
      if (!added) {
        std::vector<prometheus::ClientMetric>& samples = position->second.metric;
        samples.insert(samples.end(), family.metric.begin(), family.metric.end());
      }
    }
  }
  std::vector<prometheus::MetricFamily> families;
  for (auto& [name, family] : all) families.push_back(std::move(family));
  return families;
}

}  // namespace bx::exporters
