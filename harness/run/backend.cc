// SPDX-License-Identifier: GPL-2.0-only
#include "harness/run/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/text.h"
#include "harness/run/counter_names.h"
#include "harness/run/link_faults.h"
#include "harness/run/link_shaping.h"
#include "harness/run/rxe_backend.h"
#include "harness/scenario/key_table.h"
#include "libbx/providers/loopback/loopback_fabric.h"
#include "sim/model/pcapng_capture.h"
#include "sim/provider/topology_spec.h"

namespace bx::harness {
namespace {

class SimBackend final : public Backend {
 public:
  explicit SimBackend(std::unique_ptr<sim::SimFabric> fabric) : fabric_(std::move(fabric)) {}
  fabric::Fabric& fabric() noexcept override { return *fabric_; }
  [[nodiscard]] std::uint64_t events() const noexcept override { return fabric_->events(); }
  [[nodiscard]] std::uint64_t digest() const noexcept override { return fabric_->digest(); }
  [[nodiscard]] sim::NetworkSample sample() const noexcept override { return fabric_->sample(); }
  void report(MetricSink& sink) const override { fabric_->report(sink); }
  [[nodiscard]] sim::Audit audit() const override { return fabric_->audit(); }
  void start_faults(sim::HostFaultListener* listener) override { fabric_->start_faults(listener); }
  [[nodiscard]] std::vector<sim::FaultRecord> faults() const override { return fabric_->faults(); }
  [[nodiscard]] std::size_t faults_pending() const noexcept override { return fabric_->faults_pending(); }
  [[nodiscard]] std::uint64_t progress() const noexcept override { return fabric_->progress(); }
  [[nodiscard]] std::vector<std::string> describe_stall() const override { return fabric_->describe_stall(); }
  Result<> end_capture() override { return fabric_->end_capture(); }
  [[nodiscard]] bool has_closed_form() const noexcept override { return true; }

 private:
  std::unique_ptr<sim::SimFabric> fabric_;
};

class LoopbackBackend final : public Backend {
 public:
  explicit LoopbackBackend(const loopback::LoopbackConfig& config) : fabric_(config) {}
  fabric::Fabric& fabric() noexcept override { return fabric_; }
  [[nodiscard]] std::uint64_t events() const noexcept override { return fabric_.events(); }
  [[nodiscard]] std::uint64_t digest() const noexcept override { return fabric_.digest(); }
  [[nodiscard]] sim::NetworkSample sample() const noexcept override { return {}; }
  void report(MetricSink& /*sink*/) const override {}
  [[nodiscard]] sim::Audit audit() const override { return {}; }
  void start_faults(sim::HostFaultListener* /*listener*/) override {}
  [[nodiscard]] std::vector<sim::FaultRecord> faults() const override { return {}; }
  [[nodiscard]] std::size_t faults_pending() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t progress() const noexcept override { return 0; }
  [[nodiscard]] std::vector<std::string> describe_stall() const override { return {}; }
  Result<> end_capture() override { return {}; }
  // Every sender has the whole rate to itself: no link is shared.
  [[nodiscard]] bool has_closed_form() const noexcept override { return false; }

 private:
  loopback::LoopbackFabric fabric_;
};

constexpr std::array<std::string_view, 8> kNetworkMetrics{"pfc.", "switch.", "ecn.",   "cc.",
                                                          "nic.", "link.",   "bound.", "fault."};
// What loopback and rxe have of the network's keys.
constexpr std::array<std::string_view, 4> kPlainKeys{"fabric.hosts", "fabric.rate", "fabric.delay",
                                                     "fabric.mtu"};

bool is_unshaped(std::string_view key, const Settings& settings) {
  return settings.fabric.rate_bps > kShapedRateMax && (key == "fabric.rate" || key == "fabric.delay");
}

// "host0 to host16, and switch0:0 to switch0:16".
std::string shown_ports(const sim::TopologyPlan& plan) {
  constexpr std::size_t kSwitchesShown = 12;
  std::string text = fmt::format("host0 to host{}", plan.hosts - 1);
  const std::vector<std::uint16_t> ports = sim::switch_ports(plan);
  for (std::size_t i = 0; i < ports.size() && i < kSwitchesShown; ++i) {
    const bool last = i + 1 == ports.size();
    text += fmt::format("{}{}:0 to {}:{}", last ? " and " : ", ", plan.switches[i], plan.switches[i],
                        ports[i] - 1);
  }
  if (ports.size() > kSwitchesShown) {
    text += fmt::format(" and those of {} more switches", ports.size() - kSwitchesShown);
  }
  return text;
}

}  // namespace

std::string_view to_string(BackendKind kind) noexcept {
  switch (kind) {
    case BackendKind::sim:
      return "sim";
    case BackendKind::loopback:
      return "loopback";
    case BackendKind::rxe:
      return "rxe";
    case BackendKind::verbs:
      return "verbs";
  }
  return "unknown";
}

Result<std::unique_ptr<Backend>> make_backend(const BackendChoice& choice, const Settings& settings) {
  if (choice.kind == BackendKind::sim) {
    sim::SimConfig config = settings.fabric;
    config.engine = choice.engine;
    constexpr std::uint64_t kPicosecondsOfBits = 8'000'000'000'000;  // a byte has eight
    config.cpu.copy_ps_byte = static_cast<std::int64_t>(kPicosecondsOfBits / settings.copy_rate_bps);
    for (const FaultEntry& fault : settings.faults) {
      if (fault.enabled) config.faults.push_back(fault.spec());
    }
    Result<std::unique_ptr<sim::SimFabric>> fabric = sim::SimFabric::create(config);
    if (!fabric) return tl::unexpected<Error>(fabric.error());
    if (!choice.capture_file.empty()) {
      const Result<> started = (*fabric)->start_capture(choice.capture_file, choice.capture_ports);
      if (!started) return tl::unexpected<Error>(started.error());
    }
    if (choice.spoil) choice.spoil((*fabric)->network());
    return std::make_unique<SimBackend>(std::move(*fabric));
  }
  if (choice.kind == BackendKind::rxe) return make_rxe_backend(settings);
  if (choice.kind == BackendKind::verbs) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device, "its hosts are processes of their own");
  }
  loopback::LoopbackConfig config;
  config.seed = settings.fabric.seed;
  // One message crosses two links and a switch; its rate is that of one link.
  config.latency = Duration(2 * settings.fabric.delay_ns);
  config.bytes_per_second = std::max<std::uint64_t>(1, settings.fabric.rate_bps / 8);
  config.caps.mtu_max = settings.fabric.mtu;
  return std::make_unique<LoopbackBackend>(config);
}

std::vector<std::string> keys_taken_as_given(BackendKind kind, const Settings& settings) {
  std::vector<std::string> keys;
  if (kind == BackendKind::sim) return keys;
  for (const auto& [key, by] : settings.set_by) {
    if (key.starts_with("fabric.") && (std::ranges::find(kPlainKeys, key) == kPlainKeys.end() ||
                                       (kind == BackendKind::rxe && is_unshaped(key, settings)) ||
                                       (kind == BackendKind::verbs && key != "fabric.hosts"))) {
      keys.push_back(key);
    }
  }
  return keys;
}

std::string why_no_faults(BackendKind kind, const Settings& settings) {
  if (kind == BackendKind::sim) return {};
  if (kind == BackendKind::rxe || kind == BackendKind::verbs) return why_no_cluster_faults(kind, settings);
  for (std::size_t i = 0; i < settings.faults.size(); ++i) {
    const FaultEntry& fault = settings.faults[i];
    if (!fault.enabled) continue;
    return fmt::format(
        "backend {} has no network in which [[fault]] number {} ({} of {}) could be brought about; run it on "
        "sim, "
        "or with --set fault.enabled=false",
        to_string(kind), i + 1, fault.kind, fault.target);
  }
  return {};
}

std::string why_no_capture(const std::vector<std::string>& ports, const Settings& settings) {
  const Result<sim::TopologyPlan> plan = sim::plan_topology(settings.fabric);
  if (ports.empty() || !plan || sim::check_captured(*plan, ports)) return {};
  const std::vector<std::string> names = sim::port_names(*plan);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (std::ranges::count(names, ports[i]) == 0) {
      return fmt::format("there is no port '{}' to capture{}; there are {}", printable(ports[i]),
                         did_you_mean(ports[i], names), shown_ports(*plan));
    }
    if (std::ranges::count(ports, ports[i]) > 1) return fmt::format("port '{}' is named twice", ports[i]);
  }
  return {};
}

bool is_visible(BackendKind kind, std::string_view metric) noexcept {
  if (kind == BackendKind::sim) return true;
  if (is_counted_by_rxe(metric)) return kind == BackendKind::rxe || kind == BackendKind::verbs;
  return std::ranges::none_of(kNetworkMetrics,
                              [&](std::string_view prefix) { return metric.starts_with(prefix); });
}

}  // namespace bx::harness
