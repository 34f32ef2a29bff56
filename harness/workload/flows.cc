// SPDX-License-Identifier: GPL-2.0-only
#include "harness/workload/flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "harness/measure/latency.h"
#include "harness/workload/pattern.h"

namespace bx::harness {
namespace {

Result<> make_end(fabric::Host& host, std::uint64_t bytes, fabric::Waker* waker, FlowEnd& end) {
  fabric::Device& device = host.device();
  end.memory.resize(bytes);
  auto region = device.register_memory(end.memory, fabric::Access::remote_write);
  if (!region) return tl::unexpected<Error>(region.error());
  end.region = std::move(*region);
  auto cq = device.create_cq({.depth = Flow::kOutstandingMax, .waker = waker});
  if (!cq) return tl::unexpected<Error>(cq.error());
  end.cq = std::move(*cq);
  auto srq = device.create_srq({.depth = 1});
  if (!srq) return tl::unexpected<Error>(srq.error());
  end.srq = std::move(*srq);
  auto qp = device.create_qp({.send_cq = end.cq.get(),
                              .recv_cq = end.cq.get(),
                              .srq = end.srq.get(),
                              .send_depth = Flow::kOutstandingMax});
  if (!qp) return tl::unexpected<Error>(qp.error());
  end.qp = std::move(*qp);
  return {};
}

}  // namespace

std::vector<FlowSpec> plan_flows(const Settings& settings) {
  std::vector<FlowSpec> flows;
  for (const WorkloadSpec& workload : settings.workloads) {
    if (!workload.is_flows()) continue;
    for (const std::uint32_t source : workload.sources) {
      for (const std::uint32_t sink : workload.sinks) {
        flows.push_back({static_cast<std::uint32_t>(flows.size()), source, sink, workload.size,
                         std::min(workload.message, workload.size), workload.traffic_class});
      }
    }
  }
  return flows;
}

Result<> Flow::open(fabric::Host& source, fabric::Host& sink, const fabric::PathConfig& path) {
  reactor_ = &source.reactor();
  if (Result<> made = make_end(source, spec_.message, this, from_); !made) return made;
  if (Result<> made = make_end(sink, spec_.message, nullptr, to_); !made) return made;
  fill_pattern(PatternOf::answer, spec_.number, from_.memory);
  if (Result<> connected = to_.qp->connect(from_.qp->address(), path); !connected) return connected;
  return from_.qp->connect(to_.qp->address(), path);
}

void Flow::start() {
  started_ = true;
  started_at_ = reactor_->now();
  post();
  wake();
}

// As many whole messages as the queue takes.
void Flow::post() {
  while (posted_ < spec_.size) {
    const auto bytes = static_cast<std::uint32_t>(std::min(spec_.message, spec_.size - posted_));
    const fabric::Sge sge{reinterpret_cast<std::uintptr_t>(from_.memory.data()), bytes, from_.region->lkey()};
    const fabric::SendWr request{
        .wr_id = fabric::WrId{bytes},
        .sges = {&sge, 1},
        .remote = {reinterpret_cast<std::uintptr_t>(to_.memory.data()), to_.region->rkey()},
        .opcode = fabric::Opcode::rdma_write};
    if (from_.qp->post_send({&request, 1}) == 0) return;
    posted_ += bytes;
  }
}

// Also the first look, before anything was armed.
void Flow::wake() noexcept {
  do {
    if (!take_completions()) return listener_.on_client_done();
  } while (from_.cq->arm() == fabric::ArmResult::pending);
}

// False when the flow is over.
bool Flow::take_completions() {
  std::array<fabric::Completion, kOutstandingMax> batch;
  const std::size_t count = from_.cq->poll(batch);
  for (std::size_t i = 0; i < count; ++i) {
    if (batch[i].status != fabric::WcStatus::success) {
      failed_ = true;
      oracle_.breach(
          promise::kCallFailed,
          fmt::format("flow {} from host{} to host{} failed after {} of {} bytes: {}", spec_.number,
                      spec_.source, spec_.sink, acknowledged_, spec_.size, to_string(batch[i].status)));
      return false;
    }
    acknowledged_ += static_cast<std::uint64_t>(batch[i].wr_id);
  }
  if (acknowledged_ == spec_.size) {
    done_at_ = reactor_->now();
    return false;
  }
  post();
  return true;
}

void Flow::close(ByteChecks checks) {
  if (failed_) return;
  if (!done()) {
    return oracle_.breach(promise::kFinished,
                          fmt::format("flow {} from host{} to host{} has {} of {} bytes acknowledged",
                                      spec_.number, spec_.source, spec_.sink, acknowledged_, spec_.size));
  }
  if (checks == ByteChecks::off) return;
  if (const auto wrong = find_wrong_byte(PatternOf::answer, spec_.number, to_.memory)) {
    oracle_.breach(promise::kRightBytes, fmt::format("flow {} from host{} left a wrong byte at {} of host{}",
                                                     spec_.number, spec_.source, *wrong, spec_.sink));
  }
}

// --- What became of them.

namespace {

std::uint64_t elapsed_ns(const Flow& flow) {
  return static_cast<std::uint64_t>((flow.done_at() - flow.started_at()).count());
}

// For each sink, the bound of all flows to it together.
std::map<std::uint32_t, std::uint64_t> bounds_ps(const std::vector<FlowSpec>& flows, const PathModel& paths) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> sizes;
  std::map<std::uint32_t, std::vector<std::uint32_t>> sources;
  for (const FlowSpec& flow : flows) {
    sizes[flow.sink].push_back(flow.size);
    sources[flow.sink].push_back(flow.source);
  }
  std::map<std::uint32_t, std::uint64_t> bounds;
  for (const auto& [sink, all] : sizes) bounds[sink] = incast_bound_ps(paths.to(sink, sources[sink]), all);
  return bounds;
}

std::vector<FlowSpec> specs_of(const std::vector<std::unique_ptr<Flow>>& flows) {
  std::vector<FlowSpec> specs;
  for (const auto& flow : flows) specs.push_back(flow->spec());
  return specs;
}

}  // namespace

std::uint64_t flows_bound_ns(const std::vector<FlowSpec>& flows, const PathModel& paths) {
  std::uint64_t most = 0;
  for (const auto& [sink, bound] : bounds_ps(flows, paths)) most = std::max(most, bound);
  return most / 1000;
}

void report_flows(const std::vector<std::unique_ptr<Flow>>& flows, const PathModel* paths, MetricSink& sink) {
  if (flows.empty()) return;
  Samples times;
  std::uint64_t bytes = 0;
  std::uint64_t longest = 0;
  for (const auto& flow : flows) {
    if (!flow->done()) continue;
    times.add(elapsed_ns(*flow));
    bytes += flow->spec().size;
    longest = std::max(longest, elapsed_ns(*flow));
  }
  times.report("flow.time", sink);
  sink.metric("flow.count", static_cast<double>(times.size()), "count");
  sink.metric("flow.bytes", static_cast<double>(bytes), "bytes");
  if (longest != 0) {
    sink.metric("flow.goodput", static_cast<double>(bytes) * 8e9 / static_cast<double>(longest), "bps");
  }
  if (paths != nullptr)
    sink.metric("flow.bound", static_cast<double>(flows_bound_ns(specs_of(flows), *paths)), "ns");
}

void declare_flows(bool closed_form, MetricSink& sink) {
  for (const char* suffix : {"mean", "min", "p50", "p90", "p99", "max"}) {
    sink.metric(fmt::format("flow.time.{}", suffix), 0, "ns");
  }
  sink.metric("flow.count", 0, "count");
  sink.metric("flow.bytes", 0, "bytes");
  sink.metric("flow.goodput", 0, "bps");
  if (closed_form) sink.metric("flow.bound", 0, "ns");
}

void check_flows(const std::vector<std::unique_ptr<Flow>>& flows, const PathModel& paths, Oracle& oracle) {
  // Instants are rounded down to nanoseconds, so a duration may seem up to one too short.
  const auto too_fast = [](std::uint64_t ns, std::uint64_t bound_ps) { return (ns + 1) * 1000 < bound_ps; };
  std::map<std::uint32_t, std::uint64_t> longest;
  for (const auto& flow : flows) {
    if (!flow->done()) continue;
    const FlowSpec& spec = flow->spec();
    const std::uint64_t taken = elapsed_ns(*flow);
    longest[spec.sink] = std::max(longest[spec.sink], taken);
    if (const std::uint64_t bound = flow_bound_ps(paths.to(spec.sink, {&spec.source, 1}), spec.size);
        too_fast(taken, bound)) {
      oracle.breach(promise::kClosedForm,
                    fmt::format("flow {} from host{} to host{} took {} ns; the least possible is {} ps",
                                spec.number, spec.source, spec.sink, taken, bound));
    }
  }
  for (const auto& [sink, bound] : bounds_ps(specs_of(flows), paths)) {
    const bool all = std::ranges::all_of(
        flows, [sink = sink](const auto& flow) { return flow->spec().sink != sink || flow->done(); });
    if (!all || !too_fast(longest[sink], bound)) continue;
    oracle.breach(promise::kClosedForm,
                  fmt::format("the flows to host{} took {} ns; they cannot arrive in less than {} ps", sink,
                              longest[sink], bound));
  }
}

void add_flows(const std::vector<std::unique_ptr<Flow>>& flows, Digest& digest) {
  for (const auto& flow : flows) {
    digest.add(static_cast<std::uint64_t>(flow->done_at().time_since_epoch().count()));
    digest.add(flow->acknowledged());
  }
}

}  // namespace bx::harness
