// SPDX-License-Identifier: BSD-3-Clause
// The library's numbers for Prometheus, as something that a prometheus::Exposer serves:
//
//   prometheus::Exposer exposer("127.0.0.1:9400");
//   auto exporter = std::make_shared<bx::exporters::PrometheusExporter>();
//   exposer.RegisterCollectable(exporter);
//   ... exporter->update(worker);   // on the worker's thread, now and then
//
// A worker belongs to one thread and scrapes come on others, so update() takes a snapshot and a scrape gets
// the last one: no lock is on the way of a message. Numbers are as old as the last update.
//
// Names follow Prometheus: "messages.sent" becomes bx_messages_sent_total, times are seconds ("_seconds"),
// sizes say "bytes". Labels are worker, peer, lane and session.
#pragma once

#include <bx/worker.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "libbx/base/metrics.h"

namespace bx::exporters {

class PrometheusExporter final : public prometheus::Collectable {
 public:
  // Takes the worker's numbers in the place of those it had before. A worker is told from others by its
  // host's name.
  void update(const Worker& worker);
  // No longer shows it.
  void forget(std::string_view worker);
  // The families of all workers. Called on the exposer's threads.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  using Families = std::map<std::string, prometheus::MetricFamily>;
  mutable std::mutex mutex_;
  std::map<std::string, Families, std::less<>> workers_;
};

// "bx_messages_sent_total" of "messages.sent".
std::string prometheus_name(const LabelledMetric& metric);

}  // namespace bx::exporters
