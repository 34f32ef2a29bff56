// SPDX-License-Identifier: BSD-3-Clause
// How a component tells its counters to whoever asks: it walks them into a MetricSink. Names are dotted words
// ("pfc.pause_frames"), units are "count", "bytes", "ns", "bps", "ratio".
#pragma once

#include <string_view>

namespace bx {

class MetricSink {
 public:
  virtual void metric(std::string_view name, double value, std::string_view unit) = 0;

 protected:
  ~MetricSink() = default;
};

}  // namespace bx
