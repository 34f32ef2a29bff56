// SPDX-License-Identifier: BSD-3-Clause
// How a component tells its counters to whoever asks: it walks them into a sink. Names are dotted words
// ("pfc.pause_frames"), units are "count", "bytes", "ns", "bps", "ratio".
//
// A MetricSink takes sums over everything that reports. A LabelledMetricSink takes every number apart, with
// labels that say whose it is, so that one slow peer does not drown in the sum; it is what exporters are made
// of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "libbx/base/log_histogram.h"

namespace bx {

class MetricSink {
 public:
  virtual void metric(std::string_view name, double value, std::string_view unit) = 0;
  // What is so at the moment: a sum over everything that reports, but not over time.
  virtual void level(std::string_view name, double value, std::string_view unit) {
    metric(name, value, unit);
  }

 protected:
  ~MetricSink() = default;
};

struct MetricLabel {
  std::string_view name;   // "worker", "peer", "lane", "session"
  std::string_view value;  // of the host, the peer: whatever they are called; escape it for your format
};

enum class MetricKind : std::uint8_t {
  counter,  // only grows while its labels stay the same
  gauge,
};

struct LabelledMetric {
  std::string_view name;
  std::span<const MetricLabel> labels;
  std::string_view unit;
  MetricKind kind = MetricKind::counter;
};

// What is given to a sink is valid during the call only.
class LabelledMetricSink {
 public:
  virtual void metric(const LabelledMetric& metric, double value) = 0;
  virtual void histogram(const LabelledMetric& metric, const LogHistogram& values) = 0;

 protected:
  ~LabelledMetricSink() = default;
};

}  // namespace bx
