// SPDX-License-Identifier: GPL-2.0-only
// Workloads of kind "flows": one queue pair from each source to each sink, over which `size` bytes go as RDMA
// WRITEs of up to `message` bytes. No library, no CPU: what a run costs is the network's own. For studies of
// traffic and for measuring the model.
//
// A flow is a window of requests that is filled up again as they complete. Each message writes the same bytes
// to the same place, a pattern of its flow; what stands there at the end is compared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "harness/measure/closed_form.h"
#include "harness/measure/oracle.h"
#include "harness/scenario/settings.h"
#include "harness/workload/client.h"
#include "harness/workload/ledger.h"
#include "libbx/base/digest.h"
#include "libbx/base/metrics.h"
#include "libbx/fabric/fabric.h"

namespace bx::harness {

// What one end of a flow is made of.
struct FlowEnd {
  std::vector<std::byte> memory;
  std::unique_ptr<fabric::MemoryRegion> region;
  std::unique_ptr<fabric::CompletionQueue> cq;
  std::unique_ptr<fabric::SharedReceiveQueue> srq;
  std::unique_ptr<fabric::QueuePair> qp;
};

struct FlowSpec {
  std::uint32_t number = 0;  // in the run
  std::uint32_t source = 0;  // hosts
  std::uint32_t sink = 0;
  std::uint64_t size = 0;
  std::uint64_t message = 0;
  std::optional<std::uint8_t> traffic_class{};  // none: the library's
};

// The flows of a run, in the order of workloads, sources, sinks.
std::vector<FlowSpec> plan_flows(const Settings& settings);

class Flow final : private fabric::Waker {
 public:
  static constexpr std::uint32_t kOutstandingMax = 32;  // requests

  Flow(const FlowSpec& spec, Oracle& oracle, ClientListener& listener)
      : spec_(spec), oracle_(oracle), listener_(listener) {}
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // Makes both ends and connects them. Both hosts outlive the flow.
  Result<> open(fabric::Host& source, fabric::Host& sink, const fabric::PathConfig& path);
  // The listener is told when all has been acknowledged, or the flow has failed.
  void start();
  // A breach if it is not done, or left wrong bytes.
  // Bytes are looked at unless the network moves only their lengths.
  void close(ByteChecks checks);

  [[nodiscard]] const FlowSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] bool done() const noexcept { return acknowledged_ == spec_.size && started_; }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  [[nodiscard]] Instant started_at() const noexcept { return started_at_; }
  [[nodiscard]] Instant done_at() const noexcept { return done_at_; }

 private:
  void wake() noexcept override;
  void post();
  [[nodiscard]] bool take_completions();

  FlowSpec spec_;
  Oracle& oracle_;
  ClientListener& listener_;
  fabric::Reactor* reactor_ = nullptr;
  FlowEnd from_;
  FlowEnd to_;
  std::uint64_t posted_ = 0;  // bytes
  std::uint64_t acknowledged_ = 0;
  Instant started_at_{};
  Instant done_at_{};
  bool started_ = false;
  bool failed_ = false;
};

// flow.time.* (from the post to the last completion at the source), flow.count, flow.bytes, flow.goodput, and
// with `paths` flow.bound: the closed form of the sink that most bytes go to.
void report_flows(const std::vector<std::unique_ptr<Flow>>& flows, const PathModel* paths, MetricSink& sink);
void declare_flows(bool closed_form, MetricSink& sink);
// A breach for each flow, and each sink's flows together, that were faster than possible.
void check_flows(const std::vector<std::unique_ptr<Flow>>& flows, const PathModel& paths, Oracle& oracle);
// Least nanoseconds that the flows can take.
std::uint64_t flows_bound_ns(const std::vector<FlowSpec>& flows, const PathModel& paths);
// Of every flow: when it ended.
void add_flows(const std::vector<std::unique_ptr<Flow>>& flows, Digest& digest);

}  // namespace bx::harness
