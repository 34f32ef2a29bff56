// SPDX-License-Identifier: GPL-2.0-only
#include "sim/provider/sim_fabric.h"

#include <algorithm>
#include <charconv>

#include "sim/provider/network_audit.h"
#include "sim/provider/network_plan.h"
#include "sim/provider/sim_host.h"
#include "sim/provider/sim_network.h"

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
};

SimFabric::SimFabric(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SimFabric::~SimFabric() = default;

Result<std::unique_ptr<SimFabric>> SimFabric::create(const SimConfig& config) {
  const Result<NetworkPlan> plan = plan_network(config);
  if (!plan) return tl::unexpected<Error>(plan.error());
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
  if (config.rate_bps == 0) return 0;
  const std::uint32_t frame = frame_bytes_max(config);
  return sim::headroom_needed_bytes({.rate = {config.rate_bps},
                                     .delay = nanoseconds{static_cast<std::int64_t>(config.delay_ns)},
                                     .own_frame_bytes = frame,
                                     .peer_frame_bytes = frame});
}

std::uint64_t SimFabric::xoff_onset_bytes(const SimConfig& config,
                                          std::uint32_t active_ingress_ports) noexcept {
  const BufferConfig buffer = buffer_of(config);
  for (std::uint8_t p = 0; p < kPriorities; ++p) {
    if (buffer.classes[p].lossless) return xoff_threshold_bytes(buffer, p, active_ingress_ports);
  }
  return 0;
}

}  // namespace bx::sim
