// SPDX-License-Identifier: GPL-2.0-only
#include "harness/swarm/network.h"

#include <utility>

#include "harness/measure/metric_set.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "sim/provider/sim_fabric.h"

namespace bx::harness {
namespace {

class LoopbackSwarmNetwork final : public SwarmNetwork {
 public:
  explicit LoopbackSwarmNetwork(const SwarmPlan& plan) {
    auto inner = std::make_unique<loopback::LoopbackFabric>(plan.loopback);
    inner_ = inner.get();
    fabric_ = std::make_unique<fabric::FaultFabric>(std::move(inner), plan.faults);
  }
  [[nodiscard]] std::uint64_t digest() const noexcept override { return inner_->digest(); }
  [[nodiscard]] std::uint64_t events() const noexcept override { return inner_->events(); }

 private:
  const loopback::LoopbackFabric* inner_;
};

class SimSwarmNetwork final : public SwarmNetwork {
 public:
  SimSwarmNetwork(std::unique_ptr<sim::SimFabric> inner, const SwarmPlan& plan)
      : inner_(inner.get()), honest_(plan.honest()) {
    fabric_ = std::make_unique<fabric::FaultFabric>(std::move(inner), plan.faults);
  }
  [[nodiscard]] std::uint64_t digest() const noexcept override { return inner_->digest(); }
  [[nodiscard]] std::uint64_t events() const noexcept override { return inner_->events(); }
  void start_faults() override { inner_->start_faults(nullptr); }
  [[nodiscard]] std::uint64_t rnr_naks() const override {
    MetricSet metrics;
    inner_->report(metrics);
    return static_cast<std::uint64_t>(metrics.value_or("nic.rnr_naks", 0));
  }
  // Queue pairs that were broken on purpose leave requests unfinished: an audit is for honest runs.
  [[nodiscard]] std::vector<std::string> breaches() const override {
    return honest_ ? inner_->audit().breaches : std::vector<std::string>{};
  }

 private:
  sim::SimFabric* inner_;
  bool honest_;
};

}  // namespace

Result<std::unique_ptr<SwarmNetwork>> SwarmNetwork::create(const SwarmPlan& plan) {
  if (plan.options.backend == SwarmBackend::loopback) return std::make_unique<LoopbackSwarmNetwork>(plan);
  auto inner = sim::SimFabric::create(plan.sim);
  if (!inner) return tl::unexpected<Error>(inner.error());
  return std::make_unique<SimSwarmNetwork>(std::move(*inner), plan);
}

}  // namespace bx::harness
