// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_fabric.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/model/pcapng_capture.h"
#include "sim/provider/network_audit.h"
#include "sim/provider/network_plan.h"
#include "sim/provider/sim_host.h"
#include "sim/provider/sim_network.h"
#include "sim/provider/stall_report.h"

namespace bx::sim {
namespace {

constexpr std::string_view kHostPrefix = "host";

// The index in "host<index>", or `hosts` if the name is not that of one of them. One spelling a host: no
// leading zeros.
std::uint32_t index_of(std::string_view name, std::uint32_t hosts) noexcept {
  if (!name.starts_with(kHostPrefix)) return hosts;
  const std::string_view digits = name.substr(kHostPrefix.size());
  if (digits.empty() || (digits.front() == '0' && digits.size() > 1)) return hosts;
  std::uint32_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc{} || end != digits.data() + digits.size()) return hosts;
  return std::min(index, hosts);
}

}  // namespace

struct SimFabric::Impl {
  Impl(const SimConfig& config, const NetworkPlan& plan) : network(config, plan) {}
  SimNetwork network;
  std::unique_ptr<Capture> capture;  // destroyed before the network
};

SimFabric::SimFabric(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SimFabric::~SimFabric() = default;

Result<std::unique_ptr<SimFabric>> SimFabric::create(const SimConfig& config) {
  const Result<NetworkPlan> plan = plan_network(config);
  if (!plan) return tl::unexpected<Error>(plan.error());
  if (config.partitions != 1) {
    return fail(ErrorCode::invalid_argument, ErrorScope::device,
                "partitions: hosts that run the library need one; several are for RawTraffic");
  }
  return std::unique_ptr<SimFabric>(new SimFabric(std::make_unique<Impl>(config, *plan)));
}

Result<std::unique_ptr<fabric::Host>> SimFabric::open_host(std::string_view host) {
  SimNetwork& network = impl_->network;
  const std::uint32_t index = index_of(host, network.config().hosts);
  if (index == network.config().hosts) {
    return fail(ErrorCode::unreachable, ErrorScope::operation,
                "no such host in this fabric: they are host0 to host<hosts - 1>");
  }
  SimNetwork::HostSlot& slot = network.slot(index);
  if (slot.open != nullptr) {
    return fail(ErrorCode::exhausted, ErrorScope::operation, "the host is already open");
  }
  const std::string stream = std::string(host) + '#' + std::to_string(slot.openings++);
  return std::make_unique<SimHost>(network, static_cast<std::uint16_t>(index), host,
                                   network.prng().fork(stream));
}

Result<> SimFabric::start_capture(const std::string& path, std::span<const std::string> ports) {
  if (impl_->capture != nullptr) {
    return fail(ErrorCode::invalid_argument, ErrorScope::operation, "a capture is under way");
  }
  // Before there is a file.
  if (Result<> checked = check_captured(impl_->network.topology().plan(), ports); !checked) return checked;
  auto capture = Capture::create(impl_->network.engine(), impl_->network.topology(), path);
  if (!capture) return tl::unexpected<Error>(capture.error());
  for (const std::string& port : ports) {
    if (Result<> added = (*capture)->add(port); !added) return added;
  }
  impl_->capture = std::move(*capture);
  return {};
}

Result<> SimFabric::end_capture() {
  if (impl_->capture == nullptr) return {};
  Result<> flushed = impl_->capture->flush();
  impl_->capture.reset();
  return flushed;
}

void SimFabric::start_faults(HostFaultListener* listener) {
  if (impl_->network.faults() == nullptr) return;
  impl_->network.set_host_fault_listener(listener);
  impl_->network.faults()->start();
}

std::vector<FaultRecord> SimFabric::faults() const {
  const FaultInjector* faults = impl_->network.faults();
  return faults == nullptr ? std::vector<FaultRecord>{} : faults->records();
}

std::size_t SimFabric::faults_pending() const noexcept {
  const FaultInjector* faults = impl_->network.faults();
  return faults == nullptr ? 0 : faults->pending();
}

std::uint64_t SimFabric::progress() const noexcept {
  return network_progress(impl_->network);
}

std::vector<std::string> SimFabric::describe_stall() const {
  return sim::describe_stall(impl_->network);
}

SimNetwork& SimFabric::network() noexcept {
  return impl_->network;
}

Instant SimFabric::now() const noexcept {
  return impl_->network.loop().now();
}

std::uint64_t SimFabric::events() const noexcept {
  return impl_->network.engine().events();
}

std::uint64_t SimFabric::digest() const noexcept {
  return impl_->network.topology().digest().value();
}

NetworkSample SimFabric::sample() const noexcept {
  return sample_network(impl_->network);
}

void SimFabric::report(MetricSink& sink) const {
  report_network(impl_->network, sink);
}

Audit SimFabric::audit() const {
  return audit_network(impl_->network);
}

std::uint64_t SimFabric::headroom_needed_bytes(const SimConfig& config) noexcept {
  const std::uint32_t frame = frame_bytes_max(config);
  const auto needed = [&](std::uint64_t rate_bps, std::uint64_t delay_ns) {
    if (rate_bps == 0) return std::uint64_t{0};
    return sim::headroom_needed_bytes({.rate = {rate_bps},
                                       .delay = nanoseconds{static_cast<std::int64_t>(delay_ns)},
                                       .own_frame_bytes = frame,
                                       .peer_frame_bytes = frame});
  };
  const std::uint64_t of_hosts = needed(config.rate_bps, config.delay_ns);
  const TopologySpec& shape = config.topology;
  if (shape.shape == "single-switch") return of_hosts;
  if (shape.shape == "file") {
    std::uint64_t most = 0;
    for (const LinkPlan& link : shape.plan.links) {
      most = std::max(most, needed(link.speed.rate.bits_per_second,
                                   static_cast<std::uint64_t>(link.speed.delay.count()) / 1000));
    }
    return most;
  }
  return std::max(of_hosts, needed(shape.uplink_rate_bps != 0 ? shape.uplink_rate_bps : config.rate_bps,
                                   shape.uplink_delay_ns != 0 ? shape.uplink_delay_ns : config.delay_ns));
}

std::uint64_t SimFabric::xoff_onset_bytes(const SimConfig& config,
                                          std::uint32_t active_ingress_ports) noexcept {
  const Result<BufferConfig> buffer = buffer_of(config);
  if (!buffer) return 0;
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if (buffer->classes[p].lossless) return xoff_threshold_bytes(*buffer, p, active_ingress_ports);
  }
  return 0;
}

}  // namespace bx::sim
